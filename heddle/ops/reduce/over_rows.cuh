// Reduces the M rows of x [G, M, D] in words of eight elements or in single ones (over_rows.h says what a CTA takes). Included inside
// the namespace of each kernel that does so. Each thread adds its words in their order, and then threads join by halves.

// x as it lies; strides in elements.
struct Rows {
  const u8* data;
  i32 groups, rows, columns;
  i64 group_stride, row_stride;
};

// y [G, D].
struct Reduced {
  u8* data;
  i64 stride;
};

// A word of one element.
template <DType kType>
struct One {
  float value;
  void load(const u8* row, i64 at) { value = load_element(kType, row, at); }
  void load_kept(const u8* row, i64 at) { load(row, at); }
  float get(i32) const { return value; }
};
template <DType kType, i32 kVector>
struct WordOf {
  using Type = Eight<kType>;
};
template <DType kType>
struct WordOf<kType, 1> {
  using Type = One<kType>;
};

template <i32 kKind>
inline float both(float a, float b) {
  return kKind == kReduceMax ? arch::max_or_nan(a, b) : a + b;
}

// Joins rows of `lines` matrices [rows, columns] on chip, `pitch` elements apart, into the first row of each.
template <i32 kKind, i32 kThreads>
inline void join_rows(float* chip, i32 lines, i32 pitch, i32 rows, i32 columns) {
  ThisCta::sync();
  while (rows > 1) {
    const i32 half = (rows + 1) / 2, left = (rows - half) * columns;
    for (i32 i = ThisCta::thread(); i < lines * left; i += kThreads) {
      float* const at = chip + i / left * pitch + i % left;
      *at = both<kKind>(*at, at[half * columns]);
    }
    ThisCta::sync();
    rows = half;
  }
}

using namespace heddle::over_rows;

#include "heddle/ops/reduce/short_lines.cuh"

template <i32 kKind, DType kIn, i32 kVector, i32 kThreads, i32 kWords>
struct OverRows {
  using Word = typename WordOf<kIn, kVector>::Type;

  // Adds words that lie `stride` bytes apart, the first at `data`, as long as `left` is more than 0, `step` less with each.
  static void add(float (&mine)[kVector], const u8* data, i64 stride, i64 left, i64 step) {
#pragma unroll 1
    for (; left > (kWords - 1) * step; left -= kWords * step, data += kWords * stride)
      add_few<false>(mine, data, stride, left, step);
    if (left > 0) add_few<true>(mine, data, stride, left, step);
  }
  template <bool kChecked>
  static void add_few(float (&mine)[kVector], const u8* data, i64 stride, i64 left, i64 step) {
    Word words[kWords];
#pragma unroll
    for (i32 n = 0; n < kWords; ++n)
      if (!kChecked || left > n * step) words[n].load(data + n * stride, 0);
#pragma unroll
    for (i32 n = 0; n < kWords; ++n)
      if (!kChecked || left > n * step)
#pragma unroll
        for (i32 i = 0; i < kVector; ++i) mine[i] = both<kKind>(mine[i], words[n].get(i));
  }

  // store(g, part, d, value) takes what the CTA's part of outputs is.
  template <class Store>
  static void along_lines(const Rows& x, const RowsCut& cut, float* chip, Store&& store) {
    const i32 thread = ThisCta::thread(), line = thread / cut.team, inside = thread % cut.team;
    const i32 part = i32(ThisCta::number() % u32(cut.parts));
    const i64 first = i64(ThisCta::number() / u32(cut.parts)) * cut.groups;
    const bool is_there = line < cut.groups && first + line < x.groups;
    const i64 words = floor_div(i64(x.rows) * x.columns, kVector), begin = part * cut.each;
    const u8* const data = x.data + (first + line) * x.group_stride * size_of(kIn);
    float mine[kVector];
#pragma unroll
    for (float& value : mine) value = kKind == kReduceMax ? identity(Max()) : 0.0f;
    constexpr i64 kBytes = kVector * size_of(kIn);
    if (is_there)
      add(mine, data + (begin + inside) * kBytes, cut.team * kBytes,
          least(begin + cut.each, words) - begin - inside, cut.team);
    // Columns of a power of two come again inside a word.
    i32 width = kVector;
#pragma unroll
    for (i32 half = kVector / 2; half > 0; half /= 2)
      if (half % x.columns == 0) {
        width = half;
#pragma unroll
        for (i32 i = 0; i < half; ++i) mine[i] = both<kKind>(mine[i], mine[i + half]);
      }
    if (line < cut.groups)
#pragma unroll
      for (i32 i = 0; i < kVector; ++i)
        if (i < width) chip[thread * width + i] = mine[i];
    const i32 pitch = cut.team * width;
    join_rows<kKind, kThreads>(chip, cut.groups, pitch, pitch / x.columns, x.columns);
    for (i32 i = thread; i < cut.groups * x.columns; i += kThreads)
      if (const i32 own = i / x.columns; first + own < x.groups)
        store(i32(first) + own, part, i % x.columns, chip[own * pitch + i % x.columns]);
  }

  // As above; store_word(g, part, word, values) takes words of outputs where one thread has all rows.
  template <class Store, class StoreWord>
  static void down_columns(const Rows& x, const RowsCut& cut, float* chip, Store&& store,
                           StoreWord&& store_word) {
    const i32 thread = ThisCta::thread(), inside = thread % cut.team, group = thread / cut.team;
    const i32 across = x.columns / kVector;
    const i64 words = i64(x.groups) * across, blocks = ceil_div(words, cut.team);
    const i32 part = cut.parts == 1 ? 0 : i32(ThisCta::number() / blocks);
    const i64 first = (ThisCta::number() - part * blocks) * cut.team, own = first + inside;
    const i64 g = floor_div(own, across);
    const i32 word = i32(own - g * across);
    const i64 begin = part * cut.each, end = begin + cut.each < x.rows ? begin + cut.each : x.rows;
    float mine[kVector];
#pragma unroll
    for (float& value : mine) value = kKind == kReduceMax ? identity(Max()) : 0.0f;
    if (own < words) {
      const i64 pitch = x.row_stride * size_of(kIn);
      add(mine,
          x.data + g * x.group_stride * size_of(kIn) + (begin + group) * pitch +
              word * kVector * size_of(kIn),
          cut.groups * pitch, end - begin - group, cut.groups);
    }
    if (cut.groups == 1) {
      if (own < words) store_word(i32(g), part, word, mine);
      return;
    }
#pragma unroll
    for (i32 i = 0; i < kVector; ++i) chip[thread * kVector + i] = mine[i];
    join_rows<kKind, kThreads>(chip, 1, 0, cut.groups, cut.team * kVector);
    for (i32 i = thread; i < cut.team * kVector; i += kThreads)
      if (const i64 at = first + i / kVector; at < words) {
        const i64 line = floor_div(at, across);
        store(i32(line), part, i32(at - line * across) * kVector + i % kVector, chip[i]);
      }
  }
};

// The launches of a kernel. Config has threads, words, and the form of x.
template <class Config, i32 kKind, DType kIn, DType kOut>
struct Reduction {
  static constexpr i32 kThreads = i32(Config::kThreads), kVector = Config::kVector;
  static constexpr bool kSplit = Config::kSplit != 0, kShort = Config::kShort != 0;
  // Without it the compiler takes more registers, and less is under way.
  static constexpr i32 kHeld = Config::kWords * kVector * size_of(kIn) / 4;  // registers, for loads
  static constexpr u32 kCtas = (kShort ? 6 : kVector == 1 ? 2 : kHeld <= 32 ? 4 : 2) * 256 / kThreads;
  static constexpr RowsForm kForm{kThreads, kVector, Config::kLines != 0, true, RowsForm::kMostGroups};

  static float result(float value, i32 rows) { return kKind == kReduceMean ? value / float(rows) : value; }

  static void run(const Rows& x, const Reduced& y, u8* workspace) {
    RowsCut cut{.parts = 1};
    if constexpr (!kShort) cut = rows_cut(x.rows, x.columns, kForm);
    if constexpr (!kSplit) cut.parts = 1;
    const auto part_of = [&](i32 g, i32 part) { return (i64(g) * cut.parts + part) * x.columns; };
    const auto store = [&](i32 g, i32 part, i32 d, float value) {
      if (cut.parts == 1)
        store_element(kOut, y.data, g * y.stride + d, result(value, x.rows));
      else
        reinterpret_cast<float*>(workspace)[part_of(g, part) + d] = value;
    };
    const auto store_word = [&](i32 g, i32 part, i32 word, float(&values)[kVector]) {
      if constexpr (kVector == 8)
        if (cut.parts == 1 && y.stride % 8 == 0) {
          Eight<kOut>::of([&](i32 i) {
            return result(values[i], x.rows);
          }).store(y.data + g * y.stride * size_of(kOut), word);
          return;
        }
#pragma unroll
      for (i32 i = 0; i < kVector; ++i) store(g, part, word * kVector + i, values[i]);
    };
    if constexpr (kShort) {
      using Work = ShortLines<kKind, kIn, kVector, kThreads>;
      Work::run(x, short_cut(x.rows, x.columns, kVector, size_of(kIn)), store, store_word);
    } else {
      __shared__ float chip[kThreads * kVector];
      using Work = OverRows<kKind, kIn, kVector, kThreads, Config::kWords>;
      if constexpr (kForm.lines)
        Work::along_lines(x, cut, chip, store);
      else
        Work::down_columns(x, cut, chip, store, store_word);
    }
  }

  // Adds up the parts.
  static void finish(const Rows& x, const Reduced& y, u8* workspace) {
    __shared__ float chip[kThreads];
    using Work = OverRows<kKind, DType::kF32, 1, kThreads, 8>;
    const i32 parts = rows_cut(x.rows, x.columns, kForm).parts;
    const Rows all{workspace, x.groups, parts, x.columns, i64(parts) * x.columns, x.columns};
    const RowsForm form = parts_form(x.columns, kThreads);
    const RowsCut cut = rows_cut(parts, x.columns, form);
    const auto store = [&](i32 g, i32, i32 d, float value) {
      store_element(kOut, y.data, g * y.stride + d, result(value, x.rows));
    };
    if (form.lines)
      Work::along_lines(all, cut, chip, store);
    else
      Work::down_columns(all, cut, chip, store,
                         [&](i32 g, i32 part, i32 d, float(&value)[1]) { store(g, part, d, value[0]); });
  }
};
