// Reduces the M rows of x [G, M, D] in words of eight elements or in single ones (over_rows.h says what a CTA takes). Included inside
// the namespace of each kernel that does so. Each thread adds its words in their order, and then threads join by halves.

// x as it lies; strides in elements.
struct Rows {
  const u8* data;
  i32 groups, rows, columns;
  i64 group_stride, row_stride;
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
  using Type = Vec8<kType>;
};
template <DType kType>
struct WordOf<kType, 1> {
  using Type = One<kType>;
};

constexpr i32 kReduceTies = kNumReduceKinds;

// Elements are reduced to this: a float, or the maximum and how many elements it is.
struct Ties {
  float most, count;
};
template <i32 kKind>
inline auto none() {
  if constexpr (kKind == kReduceTies)
    return Ties{identity(Max()), 0};
  else
    return kKind == kReduceMax ? identity(Max()) : 0.0f;
}
template <i32 kKind>
using State = decltype(none<kKind>());

template <i32 kKind>
inline float both(float a, float b) {
  return kKind == kReduceMax ? arch::max_or_nan(a, b) : a + b;
}
template <i32 kKind>
inline Ties both(Ties a, Ties b) {
  const float most = arch::max_or_nan(a.most, b.most);
  return {most, (a.most == most ? a.count : 0) + (b.most == most ? b.count : 0)};
}
template <i32 kKind>
inline Ties both(Ties a, float b) {
  return both<kKind>(a, Ties{b, 1});
}

// A word of one state, of those that are reduced further.
template <class T>
struct Part {
  T value;
  void load(const u8* row, i64 at) { value = reinterpret_cast<const T*>(row)[at]; }
  T get(i32) const { return value; }
};

// Joins rows of `lines` matrices [rows, columns] on chip, `pitch` elements apart, into the first row of each.
template <i32 kKind, i32 kThreads>
inline void join_rows(State<kKind>* chip, i32 lines, i32 pitch, i32 rows, i32 columns) {
  ThisCta::sync();
  while (rows > 1) {
    const i32 half = (rows + 1) / 2, left = (rows - half) * columns;
    for (i32 i = ThisCta::thread(); i < lines * left; i += kThreads) {
      State<kKind>* const at = chip + i / left * pitch + i % left;
      *at = both<kKind>(*at, at[half * columns]);
    }
    ThisCta::sync();
    rows = half;
  }
}

using namespace heddle::over_rows;

#include "heddle/ops/reduce/short_lines.cuh"

// The sums `at` of all CTAs of a cluster, in their order.
template <i32 kKind, i32 kCluster>
inline float over_cluster(float* at) {
  const arch::OnChip place = arch::on_chip(at);
  float all = none<kKind>();
#pragma unroll
  for (i32 cta = 0; cta < kCluster; ++cta)
    all = both<kKind>(all, arch::load_float_at(arch::at_cta(place, u32(cta))));
  return all;
}

// Word has kVector elements of kBytes. kCluster: CTAs that have parts of the same outputs in one launch.
template <i32 kKind, class Word, i32 kVector, i32 kBytes, i32 kThreads, i32 kWords, i32 kCluster = 1,
          i32 kHas = kNoGaps, class Single = Word>
struct OverRows {
  using Total = State<kKind>;
  static constexpr i64 kWordBytes = kVector * kBytes;

  // Adds words that lie `stride` bytes apart, the first at `data`, as long as `left` is more than 0, `step` less with each.
  static void add(Total (&mine)[kVector], const u8* data, i64 stride, i64 left, i64 step) {
#pragma unroll 1
    for (; left > (kWords - 1) * step; left -= kWords * step, data += kWords * stride)
      add_few<false>(mine, data, stride, left, step);
    if (left > 0) add_few<true>(mine, data, stride, left, step);
  }
  template <bool kChecked>
  static void add_few(Total (&mine)[kVector], const u8* data, i64 stride, i64 left, i64 step) {
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

  // Does the same with words number `at`, `at` + step, ... of rows with gaps, whose first is at `data`. A row has `across` words.
  static void add_with_gaps(Total (&mine)[kVector], const u8* data, i64 pitch, i32 across, i64 at, i64 end,
                            i64 step) {
#pragma unroll 1
    for (; at < end; at += kWords * step) {
      Word words[kWords];
#pragma unroll
      for (i32 n = 0; n < kWords; ++n)
        if (const i64 word = at + n * step; word < end) {
          const i64 row = floor_div(word, across);
          words[n].load(data + row * pitch, word - row * across);
        }
#pragma unroll
      for (i32 n = 0; n < kWords; ++n)
        if (at + n * step < end)
#pragma unroll
          for (i32 i = 0; i < kVector; ++i) mine[i] = both<kKind>(mine[i], words[n].get(i));
    }
  }
  // Does the same with words whose elements are loaded one by one.
  static void add_elements(Total (&mine)[kVector], const u8* data, i64 pitch, i32 columns, i64 at, i64 end,
                           i64 step) {
#pragma unroll 1
    for (; at < end; at += step)
#pragma unroll
      for (i32 i = 0; i < kVector; ++i) {
        const i64 element = at * kVector + i, row = floor_div(element, columns);
        Single one;
        one.load(data + row * pitch, element - row * columns);
        mine[i] = both<kKind>(mine[i], one.get(0));
      }
  }

  // store(g, part, d, value) takes what the CTA's part of outputs is.
  template <class Store>
  static void along_lines(const Rows& x, const RowsCut& cut, Total* chip, Store&& store) {
    const i32 thread = ThisCta::thread(), line = thread / cut.team, inside = thread % cut.team;
    const i32 part = i32(ThisCta::number() % u32(cut.parts));
    const i64 first = i64(ThisCta::number() / u32(cut.parts)) * cut.groups;
    const bool is_there = line < cut.groups && first + line < x.groups;
    const i64 words = floor_div(i64(x.rows) * x.columns, kVector), begin = part * cut.each;
    const u8* const data = x.data + (first + line) * x.group_stride * kBytes;
    Total mine[kVector];
#pragma unroll
    for (Total& value : mine) value = none<kKind>();
    const i64 end = least(begin + cut.each, words), row_pitch = x.row_stride * kBytes;
    if (is_there) {
      if constexpr (kHas == kNoGaps)
        add(mine, data + (begin + inside) * kWordBytes, cut.team * kWordBytes, end - begin - inside,
            cut.team);
      else if constexpr (kHas == kWordGaps)
        add_with_gaps(mine, data, row_pitch, x.columns / kVector, begin + inside, end, cut.team);
      else
        add_elements(mine, data, row_pitch, x.columns, begin + inside, end, cut.team);
    }
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
  static void down_columns(const Rows& x, const RowsCut& cut, Total* chip, Store&& store,
                           StoreWord&& store_word) {
    const i32 thread = ThisCta::thread(), inside = thread % cut.team, group = thread / cut.team;
    const i32 across = x.columns / kVector;
    const i64 words = i64(x.groups) * across, blocks = ceil_div(words, cut.team);
    const i32 part = kCluster > 1     ? i32(ThisCta::number() % kCluster)
                     : cut.parts == 1 ? 0
                                      : i32(ThisCta::number() / blocks);
    const i64 block = kCluster > 1 ? ThisCta::number() / kCluster : ThisCta::number() - part * blocks;
    const i64 first = block * cut.team, own = first + inside;
    const i64 g = floor_div(own, across);
    const i32 word = i32(own - g * across);
    const i64 begin = part * cut.each, end = begin + cut.each < x.rows ? begin + cut.each : x.rows;
    Total mine[kVector];
#pragma unroll
    for (Total& value : mine) value = none<kKind>();
    if (own < words) {
      const i64 pitch = x.row_stride * kBytes;
      const u8* const data = x.data + g * x.group_stride * kBytes;
      if constexpr (kHas == kNoGaps)
        add(mine, data + (begin + group) * pitch + word * i32(kWordBytes), cut.groups * pitch,
            end - begin - group, cut.groups);
      else
        add_elements(mine, data, pitch, x.columns, (begin + group) * across + word, end * across,
                     i64(cut.groups) * across);
    }
    if (cut.groups == 1) {
      if (own < words) store_word(i32(g), part, word, mine);
      return;
    }
#pragma unroll
    for (i32 i = 0; i < kVector; ++i) chip[thread * kVector + i] = mine[i];
    join_rows<kKind, kThreads>(chip, 1, 0, cut.groups, cut.team * kVector);
    const i32 each = cut.team * kVector / kCluster, begin_own = kCluster > 1 ? part * each : 0;
    if constexpr (kCluster > 1) arch::sync_cluster();
    for (i32 i = begin_own + thread; i < begin_own + each; i += kThreads)
      if (const i64 at = first + i / kVector; at < words) {
        const i64 line = floor_div(at, across);
        const i32 column = i32(at - line * across) * kVector + i % kVector;
        if constexpr (kCluster > 1)
          store(i32(line), part, column, over_cluster<kKind, kCluster>(chip + i));
        else
          store(i32(line), part, column, chip[i]);
      }
    if constexpr (kCluster > 1) arch::sync_cluster();  // none ends while others read from it
  }
};

// y [G, D], its elements rounded.
template <DType kOut>
struct Reduced {
  u8* data;
  i64 stride;

  void store(i32 g, i32 d, float value) const { store_element(kOut, data, g * stride + d, value); }
  // False where eight elements are no word.
  template <class Value>
  bool store_word(i32 g, i32 word, Value&& value) const {
    if (stride % 8 != 0) return false;
    Vec8<kOut>::of(value).store(data + g * stride * size_of(kOut), word);
    return true;
  }
};

// The launches of a kernel. Config has threads, words, and the form of x.
template <class Config, i32 kKind, DType kIn>
struct Reduction {
  using Total = State<kKind>;
  static constexpr i32 kThreads = i32(Config::kThreads), kVector = Config::kVector;
  static constexpr bool kSplit = Config::kSplit != 0, kShort = Config::kShort != 0;
  // Without it the compiler takes more registers, and less is under way.
  static constexpr i32 kHeld = Config::kWords * kVector * size_of(kIn) / 4;  // registers, for loads
  static constexpr i32 kHas = Config::kGaps;
  static constexpr bool kIsSmall = kHas == kNoGaps && kVector > 1 && kHeld <= 32 &&
                                   sizeof(Total) == sizeof(float);
  static constexpr u32 kCtas = (kShort ? 6 : kIsSmall ? 4 : 2) * 256 / kThreads;
  static constexpr i32 kCluster = Config::kCluster;
  static constexpr RowsForm kForm = [] {
    RowsForm form{kThreads, kVector, Config::kLines != 0, true, RowsForm::kMostGroups, kCluster};
    return Config::kFew ? form.of_few_rows() : form;
  }();

  static Total result(Total value, i32 rows) {
    if constexpr (kKind == kReduceMean)
      return value / float(rows);
    else
      return value;
  }

  // `parts`: [G, parts, D], where CTAs share outputs.
  template <class Out>
  static void run(const Rows& x, const Out& y, Total* parts) {
    RowsCut cut{.parts = 1};
    if constexpr (!kShort) cut = rows_cut(x.rows, x.columns, kForm);
    if constexpr (!kSplit) cut.parts = 1;
    const auto store = [&](i32 g, i32 part, i32 d, Total value) {
      if (kCluster > 1 || cut.parts == 1)
        y.store(g, d, result(value, x.rows));
      else
        parts[(i64(g) * cut.parts + part) * x.columns + d] = value;
    };
    const auto store_word = [&](i32 g, i32 part, i32 word, Total(&values)[kVector]) {
      if constexpr (kVector == 8)
        if (cut.parts == 1 && y.store_word(g, word, [&](i32 i) { return result(values[i], x.rows); })) return;
#pragma unroll
      for (i32 i = 0; i < kVector; ++i) store(g, part, word * kVector + i, values[i]);
    };
    if constexpr (kShort) {
      using Work = ShortLines<kKind, kIn, kVector, kThreads, kHas != kNoGaps>;
      Work::run(x, short_cut(x.rows, x.columns, kVector, size_of(kIn)), store, store_word);
    } else {
      Total* chip;
      if constexpr (kCluster > 1) {
        chip = reinterpret_cast<Total*>(arch::dynamic_shared());
      } else {
        __shared__ Total own[kThreads * kVector];
        chip = own;
      }
      using Word = typename WordOf<kIn, kVector>::Type;
      using Work =
          OverRows<kKind, Word, kVector, size_of(kIn), kThreads, Config::kWords, kCluster, kHas, One<kIn>>;
      if constexpr (kForm.lines)
        Work::along_lines(x, cut, chip, store);
      else
        Work::down_columns(x, cut, chip, store, store_word);
    }
  }

  // Adds up the parts.
  template <class Out>
  static void finish(const Rows& x, const Out& y, const Total* from) {
    __shared__ Total chip[kThreads];
    using Work = OverRows<kKind, Part<Total>, 1, sizeof(Total), kThreads, 8>;
    const i32 parts = rows_cut(x.rows, x.columns, kForm).parts;
    const Rows all{
        reinterpret_cast<const u8*>(from), x.groups, parts, x.columns, i64(parts) * x.columns, x.columns};
    const RowsForm form = parts_form(x.columns, kThreads);
    const RowsCut cut = rows_cut(parts, x.columns, form);
    const auto store = [&](i32 g, i32, i32 d, Total value) { y.store(g, d, result(value, x.rows)); };
    if (form.lines)
      Work::along_lines(all, cut, chip, store);
    else
      Work::down_columns(all, cut, chip, store,
                         [&](i32 g, i32, i32 d, Total(&value)[1]) { store(g, 0, d, value[0]); });
  }
};
