// Shares loops among the blocks of one thread that take one element after the other. It needs nothing but the
// compiler, as plain_block.h does.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

class Loops {
 public:
  struct Index {
    i32 at;
    friend Index operator+(Index i, i32 n) { return {i.at + n}; }
  };
  struct Pair {
    float first, second;
  };

  template <class F>
  void map(i32 n, F&& f) {
    for (i32 i = 0; i < n; ++i) f(Index{i});
  }
  template <class Make, class Use>
  void map(i32 n, Make&& make, Use&& use) {
    for (i32 i = 0; i < n; ++i) use(Index{i}, make(Index{i}));
  }
  template <class F>
  void map_rows(i32 count, i32 n, F&& f) {
    for (i32 j = 0; j < count; ++j)
      for (i32 i = 0; i < n; ++i) f(j, Index{i});
  }
  template <class Make, class Use>
  void map_rows(i32 count, i32 n, Make&& make, Use&& use) {
    map_rows(count, n, [&](i32 j, Index i) { use(j, i, make(j, i)); });
  }
  float index(Index i) const { return float(i.at); }
  template <class Out, class F>
  i32 select(i32 n, Out out, F&& f) {
    i32 count = 0;
    for (i32 i = 0; i < n; ++i)
      if (f(i)) out.set_int(count++, i);
    return count;
  }
};

}  // namespace heddle
