// One element of a packed weight, as a float.
#pragma once

#include <cstring>

#include "heddle/backend/cpu/element.h"
#include "heddle/base/element.h"
#include "heddle/ir/weight.h"

namespace heddle {

inline float weight_element(const Weight& w, i32 row, i32 k) {
  const u8* panel = w.data.data + w.table[row / w.panel_rows * w.slices() + k / w.slice_cols()];
  const i32 r = row % w.panel_rows;
  const i64 place = w.place(r, k % w.slice_cols());
  if (!w.is_coded()) return get_element(w.data.dtype, panel + place * size_of(w.data.dtype));
  float scale;
  std::memcpy(&scale, panel + w.scale_place(r, k), sizeof scale);
  const DType element = info_of(w.coding.code).element;
  return round_to(w.data.dtype,
                  float(load_number(element, reinterpret_cast<const std::byte*>(panel), place)) * scale);
}

}  // namespace heddle
