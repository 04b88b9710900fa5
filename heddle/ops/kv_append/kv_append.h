// Puts the new keys and values of a step, or one of them, into their pages; what it is given is passed on unchanged.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct KvAppend {
  Tensor step;    // u8 [bytes], the host part of the step record
  Tensor state;   // u8 [bytes], the device part
  Tensor x;       // [M, N]; holds keys and values of all kv heads in columns of their own
  Tensor keys;    // [pages, kv_heads, page_size, head_dim]
  Tensor values;  // optional, the same
  i32 key_column = 0;
  i32 value_column = 0;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("step", s.step, ".", "u8");
    v.read("state", s.state, ".", "u8");
    v.read("x", s.x, "M, N");
    v.write("keys", s.keys, "P, H, S, D");
    v.optional_write("values", s.values, "P, H, S, D");
    v.attribute("key_column", s.key_column);
    v.attribute("value_column", s.value_column);
  }
};

}  // namespace heddle
