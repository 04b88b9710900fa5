// Reduces lines [M, D] of which a CTA copies many to its shared memory at once, end to end as they lie in memory, and adds them up
// from there: so short that a CTA for each, or for as many as it has threads, would have little under way. Included by over_rows.cuh.

template <i32 kKind, DType kIn, i32 kVector, i32 kThreads, bool kHasGaps>
struct ShortLines {
  using Word = typename WordOf<kIn, kVector>::Type;

  // store(g, part, d, value) takes an output, store_word(g, part, word, values) eight neighbouring ones.
  template <class Store, class StoreWord>
  static void run(const Rows& x, const ShortCut& cut, Store&& store, StoreWord&& store_word) {
    auto* const chip = reinterpret_cast<uint4*>(arch::dynamic_shared());
    const i64 line_bytes = i64(x.rows) * x.columns * size_of(kIn), first = i64(ThisCta::number()) * cut.lines;
    const i32 lines = i32(least(cut.lines, x.groups - first));
    const i32 shift = kHasGaps ? 0 : i32(first * line_bytes % 16);  // copies begin at words of 16 bytes
    if constexpr (kHasGaps)
      gather(chip, x, first, lines * x.rows);
    else
      bring(chip, x.data + first * line_bytes - shift, shift + lines * i32(line_bytes));
    const u8* const begin = reinterpret_cast<const u8*>(chip) + shift;
    const u32 all = u32(lines * cut.units * cut.team), team = u32(cut.team), units = u32(cut.units);
#pragma unroll 1
    for (u32 done = 0; done < all; done += kThreads) {
      const u32 i = done + u32(ThisCta::thread()), unit = i / team, line = unit / units, own = unit % units;
      float mine[kVector];
#pragma unroll
      for (float& value : mine) value = none<kKind>();
      if (i < all) add(mine, begin, i32(line * units) * cut.terms + i32(own), cut, i32(i % team));
      const bool is_one = kVector > 1 && x.columns == 1;
      if (is_one) mine[0] = fold(mine);
      join(mine, is_one ? 1 : kVector, team);
      if (i >= all || i % team != 0) continue;
      if (kVector == 1 || is_one)
        store(i32(first) + i32(line), 0, i32(own), mine[0]);
      else
        store_word(i32(first) + i32(line), 0, i32(own), mine);
    }
  }

 private:
  static void bring(uint4* chip, const u8* from, i32 bytes) {
#pragma unroll 4
    for (i32 i = ThisCta::thread(); i * 16 < bytes; i += kThreads)
      arch::copy_bytes(chip + i, from + i * 16, bytes - i * 16 < 16 ? bytes - i * 16 : 16);
    arch::commit_copies();
    arch::wait_copies(0);
    ThisCta::sync();
  }
  // Closes the gaps of `rows` rows from line `first` on.
  static void gather(uint4* chip, const Rows& x, i64 first, i32 rows) {
    for (i32 i = ThisCta::thread(); i < rows * x.columns; i += kThreads) {
      const i32 row = i / x.columns, line = row / x.rows;
      const i64 at =
          (first + line) * x.group_stride + (row - line * x.rows) * x.row_stride + i - row * x.columns;
      if constexpr (size_of(kIn) == 2)
        reinterpret_cast<u16*>(chip)[i] = reinterpret_cast<const u16*>(x.data)[at];
      else
        reinterpret_cast<u32*>(chip)[i] = reinterpret_cast<const u32*>(x.data)[at];
    }
    ThisCta::sync();
  }
  // Adds terms number `member`, `member` + team, ... of a unit, whose first is word `at`.
  static void add(float (&mine)[kVector], const u8* begin, i32 at, const ShortCut& cut, i32 member) {
#pragma unroll 4
    for (i32 term = member; term < cut.terms; term += cut.team) {
      Word word;
      word.load_kept(begin, at + term * cut.units);
#pragma unroll
      for (i32 i = 0; i < kVector; ++i) mine[i] = both<kKind>(mine[i], word.get(i));
    }
  }
  static float fold(const float (&mine)[kVector]) {
    float all = mine[0];
#pragma unroll
    for (i32 i = 1; i < kVector; ++i) all = both<kKind>(all, mine[i]);
    return all;
  }
  // Joins the first `count` values of each team: neighbouring lanes.
  static void join(float (&mine)[kVector], i32 count, u32 team) {
    for (u32 bits = team / 2; bits > 0; bits /= 2)
#pragma unroll
      for (i32 i = 0; i < kVector; ++i)
        if (i < count) mine[i] = both<kKind>(mine[i], ThisCta::of_lane_across(mine[i], bits));
  }
};
