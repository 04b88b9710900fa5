#include "heddle/base/thread.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>

namespace heddle {
namespace {

using Body = std::function<void()>;

void* call(void* body) noexcept {
  const std::unique_ptr<Body> owned(static_cast<Body*>(body));
  (*owned)();
  return nullptr;
}

}  // namespace

Result<Thread> Thread::try_start(Body body) {
  std::unique_ptr<Body> owned(new (std::nothrow) Body(std::move(body)));
  if (!owned) return Failure{std::strerror(ENOMEM)};
  pthread_attr_t attributes;
  int error = ::pthread_attr_init(&attributes);
  if (error != 0) return Failure{std::strerror(error)};
  error = ::pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t id = {};
  if (error == 0) error = ::pthread_create(&id, &attributes, call, owned.get());
  ::pthread_attr_destroy(&attributes);
  if (error != 0) return Failure{std::strerror(error)};
  [[maybe_unused]] const auto* theirs = owned.release();
  return Thread(id);
}

Thread::Thread(Thread&& other) noexcept : id_(other.id_), owned_(std::exchange(other.owned_, false)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(owned_, other.owned_);
  return *this;
}

Thread::~Thread() {
  if (owned_) ::pthread_join(id_, nullptr);
}

void Thread::detach() {
  if (std::exchange(owned_, false)) ::pthread_detach(id_);
}

void with_large_stack(const std::function<void()>& body) {
  rlimit limit{};
  const bool small = ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < Thread::kStackBytes;
  if (!small || !Thread::try_start(body)) body();  // a thread that started is joined here
}

std::string threads_refused(size_t wanted, size_t started, const std::string& why) {
  return fmt::format(
      "{} of {} threads started, no more could ({}); ask for fewer (--threads N), or allow more processes "
      "(ulimit -u) and more memory for their stacks of {} MB (ulimit -v)",
      started, wanted, why, Thread::kStackBytes >> 20);
}

void warn_of_few_threads(size_t wanted, size_t started, const std::string& why) {
  std::fprintf(stderr, "[threads] the work takes longer: %s\n",
               threads_refused(wanted, started, why).c_str());
}

}  // namespace heddle
