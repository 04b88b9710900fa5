#include "heddle/base/mapped_pages.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace heddle {

// A handler may walk the list at any time, so ranges are used again and never freed.
struct Range {
  std::atomic<bool> used = true, lost = false;
  std::atomic<uintptr_t> begin = 0, end = 0;
  Range* next = nullptr;
};

namespace {

std::atomic<Range*> all_ranges = nullptr;
struct sigaction before;
uintptr_t page_size = 0;

// Puts zeros in place of the pages from a fault to the end of its range: past the end of a file none is left.
bool replace(uintptr_t fault) {
  for (Range* range = all_ranges.load(std::memory_order_acquire); range; range = range->next) {
    const uintptr_t end = range->end;
    if (fault < range->begin || fault >= end) continue;
    const uintptr_t page = fault / page_size * page_size;
    void* const at = reinterpret_cast<void*>(page);  // NOLINT(performance-no-int-to-ptr)
    range->lost = true;
    return ::mmap(at, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                  0) != MAP_FAILED;
  }
  return false;
}

void on_lost_page(int number, siginfo_t* info, void* context) {
  const int error = errno;
  const bool is_fault = info->si_code > 0;
  if (is_fault && replace(reinterpret_cast<uintptr_t>(info->si_addr))) {
    errno = error;
  } else if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler == SIG_IGN && !is_fault) {
    return;
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    std::signal(number, SIG_DFL);
    (void)std::raise(number);  // delivered when this handler returns
  } else {
    before.sa_handler(number);
  }
}

bool install() {
  page_size = uintptr_t(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = on_lost_page;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, nullptr, &before);  // before the handler can run
  return ::sigaction(SIGBUS, &action, nullptr) == 0;
}

Range* take_range() {
  for (Range* range = all_ranges; range; range = range->next)
    if (!range->used.exchange(true)) return range;
  auto* made = new Range;
  made->next = all_ranges;
  while (!all_ranges.compare_exchange_weak(made->next, made)) continue;
  return made;
}

}  // namespace

PageWatch::PageWatch(const void* begin, size_t size) {
  static const bool installed = install();
  if (!installed || size == 0) return;
  range_ = take_range();
  range_->lost = false;
  range_->begin = reinterpret_cast<uintptr_t>(begin);
  range_->end = (range_->begin + size + page_size - 1) / page_size * page_size;
}

PageWatch::PageWatch(PageWatch&& other) noexcept : range_(std::exchange(other.range_, nullptr)) {}

PageWatch& PageWatch::operator=(PageWatch&& other) noexcept {
  std::swap(range_, other.range_);
  return *this;
}

PageWatch::~PageWatch() {
  if (!range_) return;
  range_->end = 0;
  range_->used = false;
}

bool PageWatch::lost() const {
  return range_ && range_->lost;
}

}  // namespace heddle
