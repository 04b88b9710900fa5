#include "heddle/engine/storage.h"

#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "heddle/base/invariant.h"
#include "heddle/base/memory.h"

namespace heddle {
namespace {

constexpr size_t kSlack = 64;  // bytes that vector loads may read past the end
constexpr size_t kLargePage = HostMemory::kLargePage;

std::byte* map_zeros(size_t bytes, std::string_view what) {
  void* data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) fail_memory(bytes, what);
  return static_cast<std::byte*>(data);
}

// Starts at a large page: memory before the first one would fault on each small page.
std::byte* map_large_pages(size_t bytes, std::string_view what) {
  const size_t small = size_t(::sysconf(_SC_PAGESIZE)), kept = (bytes + small - 1) / small * small;
  std::byte* data = map_zeros(kept + kLargePage, what);
  const size_t before = -reinterpret_cast<size_t>(data) % kLargePage;
  if (before > 0) ::munmap(data, before);
  ::munmap(data + before + kept, kLargePage - before);
  ::madvise(data + before, kept, MADV_HUGEPAGE);
  return data + before;
}

}  // namespace

HostMemory::HostMemory(size_t bytes, std::string_view what, bool sparse) : size_(bytes) {
  const bool large = bytes >= kLargePage;
  data_ = large && !sparse ? map_large_pages(size_ + kSlack, what) : map_zeros(size_ + kSlack, what);
  if (large && sparse) ::madvise(data_, size_ + kSlack, MADV_NOHUGEPAGE);
}

HostMemory::HostMemory(HostMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

HostMemory::~HostMemory() {
  if (data_) ::munmap(data_, size_ + kSlack);
}

Storage::Storage(size_t bytes, MemorySpace* space, std::string_view what, bool sparse)
    : space_(space), size_(bytes) {
  if (!space_) host_.emplace(bytes, what, sparse);
  data_ = space_ ? space_->allocate(bytes) : host_->data();
}

Storage::Storage(HostMemory filled, MemorySpace* space) : space_(space), size_(filled.size()) {
  if (space_) {
    data_ = space_->allocate(size_);
    space_->write(data_, filled.data(), size_);
  } else {
    data_ = host_.emplace(std::move(filled)).data();
  }
}

Storage::Storage(Storage&& other) noexcept
    : space_(other.space_),
      host_(std::move(other.host_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Storage& Storage::operator=(Storage&& other) noexcept {
  std::swap(space_, other.space_);
  std::swap(host_, other.host_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Storage::~Storage() {
  if (space_ && data_) space_->release(data_);
}

void Storage::write(const void* from, size_t bytes) {
  HEDDLE_CHECK(bytes <= size_);
  copy_to(space_, data_, from, bytes);
}

void Storage::read(void* to, size_t bytes) const {
  HEDDLE_CHECK(bytes <= size_);
  copy_from(space_, to, data_, bytes);
}

}  // namespace heddle
