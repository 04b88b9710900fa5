// The algebra of layouts. A layout is a function from an index to an offset, given by modes (shape : stride), the first mode
// changing fastest: index = i0 + shape0 * (i1 + shape1 * ...) goes to i0 * stride0 + i1 * stride1 + ... Layouts are plain values:
// they can be template parameters, the host tests their laws, and NVRTC compiles them in 0.03 s. The operations are those of CuTe,
// whose names stand next to them; a test compares both. Modes are not nested: where CuTe nests them, there are two layouts here.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/base/invariant.h"
#include "heddle/base/types.h"

namespace heddle::tile {

// Refuses arguments that break a rule. A constant expression that gets here does not compile, and the compiler shows `rule`. At run
// time this throws on a host; a kernel that gets here does not link, because a device has no check_failed. Callers whose arguments
// come from a user ask first: composes(), has_complement().
constexpr void hold(bool holds, const char* rule) {
  if (!holds) check_failed(rule, "heddle/tile", 0);
}

struct Mode {
  i32 shape = 1, stride = 0;
  friend constexpr bool operator==(const Mode&, const Mode&) = default;
};

struct Layout {
  static constexpr i32 kMostModes = 12;
  i32 rank = 0;
  Mode mode[kMostModes] = {};

  constexpr i32 size() const {
    i32 count = 1;
    for (i32 i = 0; i < rank; ++i) count *= mode[i].shape;
    return count;
  }
  // One more than the largest offset.
  constexpr i32 cosize() const {
    i32 last = 0;
    for (i32 i = 0; i < rank; ++i) last += (mode[i].shape - 1) * mode[i].stride;
    return last + 1;
  }
  // The last mode has no end: indices from size() on are defined. An unsigned index saves instructions where a kernel divides.
  template <class Index>
  constexpr Index operator()(Index index) const {
    Index offset = 0;
    for (i32 i = 0; i < rank; ++i) {
      const auto shape = Index(mode[i].shape);
      offset += (i + 1 < rank ? index % shape : index) * Index(mode[i].stride);
      index /= shape;
    }
    return offset;
  }
  constexpr Layout with(i32 shape, i32 stride) const {
    hold(rank < kMostModes, "a layout has at most kMostModes modes");
    Layout more = *this;
    more.mode[more.rank++] = {shape, stride};
    return more;
  }
  // The modes first ... last - 1.
  constexpr Layout part(i32 first, i32 last) const {
    Layout some;
    for (i32 i = first; i < last; ++i) some = some.with(mode[i].shape, mode[i].stride);
    return some;
  }
  friend constexpr bool operator==(const Layout&, const Layout&) = default;
};

constexpr Layout line(i32 shape, i32 stride = 1) {
  return Layout{}.with(shape, stride);
}
// b's modes after a's.
constexpr Layout join(Layout a, const Layout& b) {
  for (i32 i = 0; i < b.rank; ++i) a = a.with(b.mode[i].shape, b.mode[i].stride);
  return a;
}
// Index row + rows * col of a matrix to its place where a row's elements are neighbours, and where a column's are.
constexpr Layout by_rows(i32 rows, i32 cols) {
  return line(rows, cols).with(cols, 1);
}
constexpr Layout by_columns(i32 rows, i32 cols) {
  return line(rows, 1).with(cols, rows);
}

// Gives the same function with as few modes as possible.
constexpr Layout coalesce(const Layout& a) {
  Layout few;
  for (i32 i = 0; i < a.rank; ++i) {
    const Mode& next = a.mode[i];
    if (next.shape == 1) continue;
    Mode* last = few.rank > 0 ? &few.mode[few.rank - 1] : nullptr;
    if (last && last->stride * last->shape == next.stride)
      last->shape *= next.shape;
    else
      few = few.with(next.shape, next.stride);
  }
  return few.rank > 0 ? few : line(1, 0);
}

struct Composition {
  Layout layout;
  bool ok = true;  // layout(i) = a(b(i)) for all i < b.size()
};
// a after b, and whether that is a layout. It is one where b stays inside a, each mode of b divides the modes of a or is divided by
// them, and sums of b's offsets carry over no mode of a.
constexpr Composition try_compose(const Layout& outer, const Layout& b) {
  const Layout a = coalesce(outer);
  Composition made{{}, b.cosize() <= a.size()};
  i32 most[Layout::kMostModes] = {};  // the largest digit that b reaches in each mode of a
  for (i32 j = 0; j < b.rank; ++j) {
    i32 shape = b.mode[j].shape, stride = b.mode[j].stride;
    if (stride == 0 || shape == 1) {
      made.layout = made.layout.with(shape, 0);
      continue;
    }
    for (i32 i = 0; i + 1 < a.rank; ++i) {
      const i32 size = a.mode[i].shape;
      made.ok &= size % stride == 0 || stride % size == 0;
      const i32 left = size > stride ? size / stride : 1, take = left < shape ? left : shape;
      if (take > 1) {
        made.ok &= shape % take == 0;
        made.layout = made.layout.with(take, stride * a.mode[i].stride);
        most[i] += (take - 1) * stride;
        shape /= take;
      }
      stride = (stride + size - 1) / size;
    }
    if (shape > 1) made.layout = made.layout.with(shape, stride * a.mode[a.rank - 1].stride);
  }
  for (i32 i = 0; i + 1 < a.rank; ++i) made.ok &= most[i] < a.mode[i].shape;
  made.layout = coalesce(made.layout);
  return made;
}
constexpr bool composes(const Layout& a, const Layout& b) {
  return try_compose(a, b).ok;
}
// compose(a, b)(i) = a(b(i)). CuTe: composition.
constexpr Layout compose(const Layout& a, const Layout& b) {
  const Composition made = try_compose(a, b);
  hold(made.ok,
       "compose(a, b): b stays inside a, its modes divide those of a, and their sums carry over none");
  return made.layout;
}

// By stride, the smallest first, without modes that reach one offset only.
constexpr Layout sorted(const Layout& a) {
  Layout order;
  for (i32 i = 0; i < a.rank; ++i) {
    if (a.mode[i].shape == 1 || a.mode[i].stride == 0) continue;
    order = order.with(a.mode[i].shape, a.mode[i].stride);
    for (i32 j = order.rank - 1; j > 0 && order.mode[j].stride < order.mode[j - 1].stride; --j) {
      const Mode later = order.mode[j - 1];
      order.mode[j - 1] = order.mode[j], order.mode[j] = later;
    }
  }
  return order;
}
// True where each mode begins at a multiple of what those of smaller stride fill.
constexpr bool has_complement(const Layout& a) {
  const Layout order = sorted(a);
  for (i32 i = 1; i < order.rank; ++i)
    if (order.mode[i].stride % (order.mode[i - 1].stride * order.mode[i - 1].shape) != 0) return false;
  return true;
}
// Reaches what a leaves out of [0, size), which is rounded up: a(i) + complement(j) is each offset once. CuTe: complement.
constexpr Layout complement(const Layout& a, i32 size) {
  hold(has_complement(a), "complement(a): the modes of a do not overlap");
  const Layout order = sorted(a);
  Layout gaps;
  i32 filled = 1;
  for (i32 i = 0; i < order.rank; ++i) {
    gaps = gaps.with(order.mode[i].stride / filled, filled);
    filled = order.mode[i].stride * order.mode[i].shape;
  }
  return coalesce(gaps.with((size + filled - 1) / filled, filled));
}

// Two layouts whose offsets add up.
struct LayoutPair {
  Layout inner, outer;
};
// True if tiles b fill a.
constexpr bool divides(const Layout& b, const Layout& a) {
  return has_complement(b) && b.cosize() <= a.size() && composes(a, join(b, complement(b, a.size())));
}
// a cut by tiles b: inside a tile, from tile to tile. CuTe: logical_divide.
constexpr LayoutPair divide(const Layout& a, const Layout& b) {
  hold(divides(b, a), "divide(a, b): tiles b fill a");
  return {compose(a, b), compose(a, complement(b, a.size()))};
}
// a repeated as b says: a, from copy to copy. CuTe: logical_product.
constexpr LayoutPair product(const Layout& a, const Layout& b) {
  return {a, compose(complement(a, a.size() * b.cosize()), b)};
}

// a(inverse(a)(i)) = i for all i < inverse(a).size(): as far as a reaches offsets without a gap. CuTe: right_inverse.
constexpr Layout inverse(const Layout& a) {
  Layout back;
  i32 filled = 1;
  for (bool found = true; found;) {
    found = false;
    i32 begin = 1;
    for (i32 i = 0; i < a.rank && !found; ++i) {
      found = a.mode[i].shape > 1 && a.mode[i].stride == filled;
      if (found) back = back.with(a.mode[i].shape, begin), filled *= a.mode[i].shape;
      begin *= a.mode[i].shape;
    }
  }
  return coalesce(back);
}

// The number of elements that a and b have next to each other in the same order, so that a copy between them
// may move them as one word: the indices of every run of so many offsets of a, aligned to it, are a run of b
// too. CuTe: max_common_vector.
constexpr i32 common_vector(const Layout& a, const Layout& b) {
  const Layout back = inverse(a);
  i32 best = 1;
  for (i32 modes = 1; modes <= back.rank; ++modes) {
    const Composition both = try_compose(b, back.part(0, modes));
    if (!both.ok) break;
    if (both.layout.mode[0].stride == 1) best = both.layout.mode[0].shape;
  }
  return best;
}

// The offsets of a small layout as a table. In an unrolled loop its entries are constants, and the compiler takes a third of the time
// that it takes for calls of the layout.
template <i32 kCount>
struct Offsets {
  i32 at[kCount];
};
template <Layout kLayout>
constexpr Offsets<kLayout.size()> offsets() {
  Offsets<kLayout.size()> table{};
  for (i32 i = 0; i < kLayout.size(); ++i) table.at[i] = kLayout(i);
  return table;
}

constexpr i32 power_of_two_in(i32 number) {
  return number & -number;
}

// Permutes words of 2^base elements inside 2^bits of them: bits base ... of an offset change by its bits base + shift ... CuTe:
// Swizzle<bits, base, shift>.
struct Swizzle {
  i32 bits = 0, base = 0, shift = 0;

  // Its own inverse.
  template <class Index>
  constexpr Index operator()(Index offset) const {
    return offset ^ (offset >> (base + shift) & Index((1 << bits) - 1)) << base;
  }
  // Elements that stay next to each other.
  constexpr i32 word() const { return bits == 0 ? 1 << 30 : 1 << base; }
  // This permutation in units of `unit` elements (2: pairs).
  constexpr Swizzle in_units(i32 unit) const {
    if (bits == 0) return {};
    i32 log = 0;
    while (1 << log < unit) ++log;
    hold(1 << log == unit && log <= base, "a swizzled tile is only seen in units that its words are made of");
    return {bits, base - log, shift};
  }
  friend constexpr bool operator==(const Swizzle&, const Swizzle&) = default;
};
// The modes of tensor copies and of wgmma: 16-byte words are permuted inside `span` = 128, 64 or 32 bytes by which 128 bytes of the
// tile they are in; 16: not at all. Offsets are in bytes. (PTX ISA, "Swizzling modes".)
constexpr Swizzle swizzle_of_span(i32 span) {
  hold(span == 128 || span == 64 || span == 32 || span == 16, "a span is 128, 64, 32 or 16 bytes");
  if (span == 16) return {};
  return {span == 128 ? 3 : span == 64 ? 2 : 1, 4, 3};
}

}  // namespace heddle::tile
