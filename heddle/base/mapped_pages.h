// Keeps a process alive when a mapped file gets shorter, or its disk fails, while its pages are read: SIGBUS.
//
// Copies with pread would need no signal, but they cost a pass over all weights, and everything that reads a map would
// have to know. Instead a handler puts zeros in place of the lost pages and notes it, and the reader asks when it is done.
// The handler is installed with the first map and stays. It takes only faults inside of watched pages; all others go to
// the handler that was there before, or end the process as they would have.
#pragma once

#include <cstddef>

namespace heddle {

// Watches pages from when it is made until it goes.
class PageWatch {
 public:
  PageWatch() = default;
  PageWatch(const void* begin, size_t size);
  PageWatch(PageWatch&& other) noexcept;
  PageWatch& operator=(PageWatch&& other) noexcept;
  ~PageWatch();

  // True if pages were lost: zeros were read there.
  bool lost() const;

 private:
  struct Range* range_ = nullptr;
};

}  // namespace heddle
