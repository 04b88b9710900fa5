// Plans a copy of a tile between memory and shared memory, or between any two layouts: how wide a word is, which words a thread
// takes, where each goes, what a tail leaves out, and which kind of instruction can do it. The tile's sizes and layouts are
// constants; the pitch of memory and the tails are data, so that one kernel serves all shapes.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/tile/layout.h"

namespace heddle::tile {

enum class CopyEngine {
  kLoadStore,  // through registers
  kAsync,      // cp.async: words of 4, 8 or 16 bytes
  kBulk,       // one run of bytes for the whole tile (cp.async.bulk)
  kTensor,     // boxes of a tensor map (cp.async.bulk.tensor)
};

// Facts of memory that are known when a kernel is chosen; pitch: bytes from one line to the next.
struct CopyFacts {
  i64 pitch_bytes;
  i32 alignment;          // the first byte's
  bool has_async = true;  // sm_80
  bool has_bulk = false;  // sm_90
};

// A word of the tile.
struct CopyWord {
  i32 row, col;  // its first element's
  i32 to;        // its place in the target, in elements
};

// The words of a plan, as a kernel asks for them: all that follows from the plan is in constants.
struct CopyWords {
  i32 width, threads, count;  // elements in a word, words of the tile
  i32 length;                 // elements in a line of memory
  bool along_rows;            // lines are rows
  Layout placed;              // place in memory to place in the target, before words are permuted
  Swizzle swizzle;

  // Words of a thread, rounded up.
  constexpr i32 each() const { return (count + threads - 1) / threads; }
  // True if every thread has each() words: no word needs has().
  constexpr bool is_even() const { return count % threads == 0; }
  constexpr bool has(u32 thread, u32 i) const { return thread + i * u32(threads) < u32(count); }
  // Word i of a thread; neighbours in a warp take neighbours in memory.
  constexpr CopyWord word(u32 thread, u32 i) const {
    const u32 at = (thread + i * u32(threads)) * u32(width), line = at / u32(length),
              in_line = at % u32(length);
    const i32 to = i32(swizzle(placed(at)));
    return along_rows ? CopyWord{i32(line), i32(in_line), to} : CopyWord{i32(in_line), i32(line), to};
  }
  // The number of elements of a word that lie in a tile that has only `rows` x `cols`: 0 ... width.
  constexpr i32 valid(const CopyWord& word, i32 rows, i32 cols) const {
    const i32 line = along_rows ? word.row : word.col, lines = along_rows ? rows : cols;
    const i32 left = along_rows ? cols - word.col : rows - word.row;
    if (line >= lines || left <= 0) return 0;
    return left < width ? left : width;
  }
};

struct CopyPlan {
  static constexpr i32 kWidestBytes = 16;  // one instruction moves

  i32 rows, cols, element_bytes, threads;
  Layout from;  // element row + rows * col to its place in memory, if lines followed each other without a gap
  Layout to;    // to its place in the target
  Swizzle swizzle = {};      // the target's
  i32 most_width = 1 << 30;  // elements; less than the widest where memory is not aligned

  constexpr i32 size() const { return rows * cols; }
  // Elements of a word: the most that both sides have next to each other. Words do not cross lines.
  constexpr i32 width() const {
    const i32 limits[] = {kWidestBytes / element_bytes, power_of_two_in(length()), swizzle.word(),
                          most_width};
    i32 width = power_of_two_in(common_vector(from, to));
    for (const i32 limit : limits)
      while (width > limit) width /= 2;
    return width;
  }
  constexpr i32 word_bytes() const { return width() * element_bytes; }
  // From a place in memory to a place in the target, before words are permuted.
  constexpr Layout placed() const { return compose(to, inverse(from)); }
  // True if lines of memory are rows.
  constexpr bool along_rows() const { return cols > 1 && from(rows) == 1; }
  constexpr i32 length() const { return along_rows() ? cols : rows; }
  constexpr i32 lines() const { return size() / length(); }
  constexpr CopyWords words() const {
    return {width(), threads, size() / width(), length(), along_rows(), placed(), swizzle};
  }

  // The plan for memory that is aligned so: a word lies on a multiple of its size.
  constexpr CopyPlan aligned(i64 pitch_bytes, i32 alignment) const {
    CopyPlan plan = *this;
    const i64 both = (pitch_bytes & -pitch_bytes) | alignment;
    const i64 bytes = both & -both;
    plan.most_width = bytes >= kWidestBytes   ? most_width
                      : bytes < element_bytes ? 1
                                              : i32(bytes) / element_bytes;
    return plan;
  }
  // The box of a tensor map: elements of one span along a line, and lines. 0 where the target is no such box.
  constexpr i32 span_bytes() const {
    for (i32 span = 128; span >= 16; span /= 2) {
      const i32 wide = span / element_bytes;
      if (wide == 0 || length() % wide != 0) continue;
      if (swizzle != swizzle_of_span(span).in_units(element_bytes)) continue;
      const Layout inside = by_blocks(length(), lines(), wide);
      if (coalesce(placed()) == coalesce(inside)) return span;
    }
    return 0;
  }
  // Boxes of span_bytes() x lines that fill the tile.
  constexpr i32 boxes() const { return span_bytes() == 0 ? 0 : length() * element_bytes / span_bytes(); }
  // True if memory and the target are the same run of bytes.
  constexpr bool is_one_run(i64 pitch_bytes) const {
    return pitch_bytes == i64(length()) * element_bytes && swizzle.bits == 0 &&
           coalesce(placed()) == line(size(), 1) && size() * element_bytes % 16 == 0;
  }
  constexpr CopyEngine engine(const CopyFacts& facts) const {
    const bool has_words = facts.pitch_bytes % 16 == 0 && facts.alignment % 16 == 0;
    if (facts.has_bulk && has_words && is_one_run(facts.pitch_bytes)) return CopyEngine::kBulk;
    if (facts.has_bulk && has_words && span_bytes() > 0) return CopyEngine::kTensor;
    if (facts.has_async && aligned(facts.pitch_bytes, facts.alignment).word_bytes() >= 4)
      return CopyEngine::kAsync;
    return CopyEngine::kLoadStore;
  }
  friend constexpr bool operator==(const CopyPlan&, const CopyPlan&) = default;

 private:
  // Place in memory to place in blocks of `wide` elements of each line.
  static constexpr Layout by_blocks(i32 length, i32 lines, i32 wide) {
    return line(wide, 1).with(length / wide, lines * wide).with(lines, wide);
  }
};

// Memory with rows (columns) as lines, to a target.
constexpr CopyPlan copy_rows(i32 rows, i32 cols, i32 element_bytes, i32 threads, const Layout& to,
                             Swizzle swizzle = {}) {
  return {rows, cols, element_bytes, threads, by_rows(rows, cols), to, swizzle};
}
constexpr CopyPlan copy_columns(i32 rows, i32 cols, i32 element_bytes, i32 threads, const Layout& to,
                                Swizzle swizzle = {}) {
  return {rows, cols, element_bytes, threads, by_columns(rows, cols), to, swizzle};
}

}  // namespace heddle::tile
