#include "heddle/engine/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "heddle/base/element.h"
#include "heddle/base/invariant.h"

namespace heddle {
namespace {

// 128 bits: every x86-64 and arm64 has them.
using Words = u32 __attribute__((vector_size(16)));
using Pairs = u16 __attribute__((vector_size(16)));

Words load(const std::byte* at) {
  Words words;
  std::memcpy(&words, at, sizeof words);
  return words;
}
void store(std::byte* at, Words words) {
  std::memcpy(at, &words, sizeof words);
}

template <class Element>
class Packer {
 public:
  Packer(const Weight& weight, std::span<const PackRow> rows)
      : weight_(weight),
        rows_(rows),
        exponent_(Element(not_finite_exponent(weight.data.dtype))),
        dense_(std::ranges::all_of(rows, [](const PackRow& row) { return row.step == 1; })),
        turned_(lie_turned(rows)) {}

  std::optional<PackPlace> pack(std::byte* base, const u64* table) {
    for (i32 slice = 0; slice < weight_.slices(); ++slice) {
      first_ = slice * weight_.slice_cols();
      out_ = base + table[slice];
      const i32 last = std::min(first_ + weight_.slice_cols(), weight_.cols());
      // Packs some columns of all rows at a time, so that cache lines that rows share stay in L1.
      for (i32 from = first_; from < last; from += kColumns) {
        const i32 to = std::min(from + kColumns, last);
        if (!pack_columns(from, to)) return not_finite(from, to);
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr i32 kSize = sizeof(Element);
  // Four cache lines of a row: 7.5 GB/s on a core of an EPYC 9004; eight lines give 6.7.
  static constexpr i32 kColumns = 256 / kSize;
  static constexpr i32 kLanes = 16 / kSize;  // elements of a vector
  static constexpr i32 kWord = 4 / kSize;    // elements in 32 bits
  using Lanes = std::conditional_t<kSize == 4, Words, Pairs>;

  // True if the rows of each column are adjacent.
  static bool lie_turned(std::span<const PackRow> rows) {
    for (size_t r = 0; r < rows.size(); ++r)
      if (rows[r].data != rows[0].data + r * kSize || rows[r].step != rows[0].step) return false;
    return !rows.empty();
  }

  // Returns false when a value is not finite.
  bool pack_columns(i32 from, i32 to) {
    const i32 word = weight_.interleave * kSize;  // adjacent bytes of one row
    const i32 whole = from + (to - from) / kLanes * kLanes;
    seen_ = Lanes{};
    if (turned_ && word == 4) {
      const i32 r = i32(rows_.size()) / kLanes * kLanes, words = from + (to - from) / kWord * kWord;
      pack_turned(r, from, words);
      pack_elements(r, from, words);
      pack_elements(0, words, to);
    } else if (dense_ && word == 4) {
      i32 r = 0;
      for (; r + 4 <= i32(rows_.size()); r += 4) pack_four_rows(r, from, whole);
      pack_elements(r, from, whole);
      pack_elements(0, whole, to);
    } else if (dense_ && word == 16) {
      for (i32 r = 0; r < i32(rows_.size()); ++r) pack_vectors(r, from, whole);
      pack_elements(0, whole, to);
    } else {
      pack_elements(0, from, to);
    }
    Element any = 0;
    for (i32 i = 0; i < kLanes; ++i) any |= seen_[i];
    return any == 0;
  }

  // The result is kept in a local variable, because stores of bytes may alias members.
  Words look(Words words, Lanes& seen) const {
    const Lanes bits = reinterpret_cast<Lanes>(words) & exponent_;
    seen |= reinterpret_cast<Lanes>(bits == exponent_);
    return words;
  }

  // Packs four words of four rows at a time: word i of each row goes to line i of the panel.
  void pack_four_rows(i32 r, i32 from, i32 to) {
    const std::byte* in[4];
    for (i32 i = 0; i < 4; ++i) in[i] = rows_[size_t(r + i)].data;
    const i64 line = i64(weight_.panel_rows) * 4, end = i64(to) * kSize;
    std::byte* out = out_ + weight_.place(r, from - first_) * kSize;
    Lanes seen = seen_;
    for (i64 at = i64(from) * kSize; at < end; at += 16, out += 4 * line) {
      Words row[4];
      for (i32 i = 0; i < 4; ++i) row[i] = look(load(in[i] + at), seen);
      const Words low = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5),
                  high = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7),
                  next_low = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5),
                  next_high = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
      store(out, __builtin_shufflevector(low, next_low, 0, 1, 4, 5));
      store(out + line, __builtin_shufflevector(low, next_low, 2, 3, 6, 7));
      store(out + 2 * line, __builtin_shufflevector(high, next_high, 0, 1, 4, 5));
      store(out + 3 * line, __builtin_shufflevector(high, next_high, 2, 3, 6, 7));
    }
    seen_ = seen;
  }

  void pack_vectors(i32 r, i32 from, i32 to) {
    const std::byte* in = rows_[size_t(r)].data;
    const i64 line = i64(weight_.panel_rows) * 16, end = i64(to) * kSize;
    std::byte* out = out_ + weight_.place(r, from - first_) * kSize;
    Lanes seen = seen_;
    for (i64 at = i64(from) * kSize; at < end; at += 16, out += line) store(out, look(load(in + at), seen));
    seen_ = seen;
  }

  // Packs the first rows, as many as fill vectors, of a transposed matrix.
  void pack_turned(i32 rows, i32 from, i32 to) {
    const i64 column = rows_[0].step * kSize;
    Lanes seen = seen_;
    for (i32 k = from; k < to; k += kWord) {
      const std::byte* in = rows_[0].data + k * column;
      std::byte* out = out_ + weight_.place(0, k - first_) * kSize;
      for (i32 r = 0; r < rows; r += kLanes, in += 16, out += 16 * kWord) {
        const Words one = look(load(in), seen);
        if constexpr (kSize == 4) {
          store(out, one);
        } else {
          const auto a = reinterpret_cast<Pairs>(one),
                     b = reinterpret_cast<Pairs>(look(load(in + column), seen));
          store(out, reinterpret_cast<Words>(__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)));
          store(out + 16, reinterpret_cast<Words>(__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)));
        }
      }
    }
    seen_ = seen;
  }

  // Packs rows from r on, each separately: if columns are apart, their loads overlap.
  void pack_elements(i32 r, i32 from, i32 to) {
    const i32 side = weight_.interleave;
    const i64 next_word = i64(weight_.panel_rows - 1) * side * kSize;
    Element bad = 0;
    for (; r < i32(rows_.size()); ++r) {
      std::byte* out = out_ + weight_.place(r, from - first_) * kSize;
      const std::byte* in = rows_[size_t(r)].data + from * rows_[size_t(r)].step * kSize;
      const i64 column = rows_[size_t(r)].step * kSize;
      i32 in_word = (from - first_) % side;
      for (i32 k = from; k < to; ++k, in += column, out += kSize) {
        Element value;
        std::memcpy(&value, in, sizeof value);
        std::memcpy(out, &value, sizeof value);
        bad |= Element((value & exponent_) == exponent_);
        if (++in_word < side) continue;
        in_word = 0;
        out += next_word;
      }
    }
    seen_[0] |= bad;
  }

  Element element(i32 r, i32 k) const {
    const PackRow& row = rows_[size_t(r)];
    Element value;
    std::memcpy(&value, row.data + k * row.step * kSize, sizeof value);
    return value;
  }

  PackPlace not_finite(i32 from, i32 to) const {
    for (i32 r = 0; r < i32(rows_.size()); ++r)
      for (i32 k = from; k < to; ++k)
        if ((element(r, k) & exponent_) == exponent_) return {r, k};
    HEDDLE_CHECK(false);
    return {};
  }

  const Weight& weight_;
  std::span<const PackRow> rows_;
  const Element exponent_;
  const bool dense_;   // the columns of each row are adjacent
  const bool turned_;  // the rows of each column are adjacent
  i32 first_ = 0;      // first column of the slice
  std::byte* out_ = nullptr;
  Lanes seen_{};  // not 0: some value was not finite
};

// A block of it at a time, whose loop has no exit, so that it takes vectors.
template <class Element>
std::optional<i64> first_not_finite(Element exponent, const std::byte* from, i64 count) {
  constexpr i64 kBlock = 4096;
  Element block[kBlock];
  for (i64 begin = 0; begin < count; begin += kBlock) {
    const i64 size = std::min(kBlock, count - begin);
    std::memcpy(block, from + begin * i64(sizeof(Element)), size_t(size) * sizeof(Element));
    Element bad = 0;
    for (i64 i = 0; i < size; ++i) bad |= Element((block[i] & exponent) == exponent);
    for (i64 i = 0; bad && i < size; ++i)
      if ((block[i] & exponent) == exponent) return begin + i;
  }
  return std::nullopt;
}

// A finite scale up to this one makes a finite bf16 of every code.
constexpr float kSafeScale = 0x1p119f;

bool is_number(Code code, std::byte bits) {
  return code != Code::kF8E4M3 || (bits & std::byte{0x7f}) != std::byte{0x7f};
}

// The eight codes of a piece of int4 as CodePanel has them: those of even places first.
u32 even_first(u32 codes) {
  const auto halves = [](u32 w) {
    w &= 0x0f0f0f0f, w = (w | w >> 4) & 0x00ff00ff;
    return (w | w >> 8) & 0xffff;
  };
  return halves(codes) | halves(codes >> 4) << 16;
}

// Copies a row's pieces of a streamed panel, and the scales of its parts.
void pack_streamed(const Weight& weight, i32 r, const PackRow& row, std::byte* panel) {
  const CodePanel layout = weight.code_panel();
  const i32 bits = layout.bits, cols = layout.cols;
  for (i32 k = 0; k < cols; k += CodePanel::kPiece) {
    std::byte piece[CodePanel::kPiece] = {};
    std::memcpy(piece, row.data + i64(k) * bits / 8,
                size_t(std::min(cols - k, CodePanel::kPiece) * bits + 7) / 8);
    if (bits == 4) {
      u32 codes;
      std::memcpy(&codes, piece, sizeof codes);
      codes = even_first(codes);
      std::memcpy(piece, &codes, sizeof codes);
    }
    std::memcpy(panel + layout.place(r, k) * bits / 8, piece, size_t(bits));
  }
  for (i32 part = 0; part < layout.parts(); ++part) {
    const i32 begin = part * layout.part_cols(), end = begin + layout.cols_of(part);
    for (i32 k = begin; k<end; k += layout.group> 0 ? layout.group : end - begin)
      std::memcpy(panel + layout.scale_place(r, k), &row.scales[k / weight.group_cols()], sizeof(float));
  }
}

// Copies words of codes, and the scales after them. Words of a row go to lines that all rows share.
std::optional<PackPlace> pack_codes(const Weight& weight, std::span<const PackRow> rows, std::byte* panel) {
  const Code code = weight.coding.code;
  const i32 bits = bits_of(code);
  const size_t word = size_t(weight.interleave * bits / 8),
               bytes = size_t(bytes_of(info_of(code).element, weight.cols()));
  for (i32 r = 0; r < i32(rows.size()); ++r) {
    const std::byte* in = rows[size_t(r)].data;
    bool all = true;
    for (size_t i = 0; i < bytes; ++i) all &= is_number(code, in[i]);
    for (size_t i = 0; !all && i < bytes; ++i)
      if (!is_number(code, in[i])) return PackPlace{r, i32(i) * 8 / bits};
    std::byte* out = panel + size_t(r) * word;
    for (size_t i = 0; !weight.is_streamed() && i < bytes; i += word, out += word * size_t(weight.panel_rows))
      std::memcpy(out, in + i, std::min(word, bytes - i));
    for (i32 g = 0; g < weight.groups(); ++g) {
      const float scale = rows[size_t(r)].scales[g];
      const i32 first = g * weight.group_cols(), last = std::min(first + weight.group_cols(), weight.cols());
      for (i32 k = first; !(std::abs(scale) <= kSafeScale) && k < last; ++k)
        if (const float value = float(load_number(info_of(code).element, in, k)) * scale;
            !std::isfinite(round_to(weight.data.dtype, value)))
          return PackPlace{r, k};
      if (!weight.is_streamed()) std::memcpy(panel + weight.scale_place(r, first), &scale, sizeof scale);
    }
    if (weight.is_streamed()) pack_streamed(weight, r, rows[size_t(r)], panel);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::byte> unpack_row(const Weight& weight, i32 row, const std::byte* base, const u64* table) {
  const size_t size = size_t(size_of(weight.data.dtype));
  std::vector<std::byte> made(size_t(weight.cols()) * size);
  for (i32 k = 0; k < weight.cols(); ++k) {
    const i32 slice = k / weight.slice_cols();
    const i64 place = weight.place(row, k - slice * weight.slice_cols());
    std::memcpy(&made[size_t(k) * size], base + table[slice] + size_t(place) * size, size);
  }
  return made;
}

std::optional<i64> find_not_finite(DType dtype, const std::byte* from, i64 count) {
  if (size_of(dtype) == 4) return first_not_finite<u32>(not_finite_exponent(dtype), from, count);
  return first_not_finite<u16>(u16(not_finite_exponent(dtype)), from, count);
}

std::optional<PackPlace> pack_panel(const Weight& weight, std::span<const PackRow> rows, std::byte* base,
                                    const u64* table) {
  if (weight.is_coded()) return pack_codes(weight, rows, base + *table);
  if (size_of(weight.data.dtype) == 4) return Packer<u32>(weight, rows).pack(base, table);
  return Packer<u16>(weight, rows).pack(base, table);
}

}  // namespace heddle
