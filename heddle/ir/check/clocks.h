// Vector clocks: for each worker, the number of its instructions that are known to have ended. Instructions
// are counted from 1; the second step's come after the first's.
#pragma once

#include <algorithm>
#include <vector>

#include "heddle/base/types.h"

namespace heddle::proof {

// Rows of one clock each; a clock has one entry per worker.
class Clocks {
 public:
  explicit Clocks(u32 workers, size_t rows = 0) : width_(workers), at_(rows * workers, 0) {}

  u32* operator[](size_t row) { return at_.data() + row * width_; }
  const u32* operator[](size_t row) const { return at_.data() + row * width_; }
  size_t add() {
    at_.resize(at_.size() + width_, 0);
    return rows() - 1;
  }
  void clear(size_t row) { std::fill_n((*this)[row], width_, 0u); }
  size_t rows() const { return at_.size() / width_; }
  u32 width() const { return width_; }

 private:
  u32 width_;
  std::vector<u32> at_;
};

inline void join(u32* into, const u32* other, u32 width) {
  for (u32 w = 0; w < width; ++w) into[w] = std::max(into[w], other[w]);
}

// Finds a worker of which `needed` knows more than `known` does; returns `width` when there is none.
inline u32 first_beyond(const u32* needed, const u32* known, u32 width) {
  u32 beyond = 0;
  for (u32 w = 0; w < width; ++w) beyond |= u32(needed[w] > known[w]);
  if (!beyond) return width;
  u32 w = 0;
  while (needed[w] <= known[w]) ++w;
  return w;
}

}  // namespace heddle::proof
