// The choice on a GPU from sm_80 on, in a few passes over the scores, 16 bytes a thread at a time.
// A threshold is searched by digits of a key that ascends with the score: a pass counts scores by the next digit, which
// tells about where it lies, another sums the weights above it; what lies beside it fits on chip as a rule, where it is searched on.
// The token is searched in sums of units of tokens, which one pass makes. All sums have a fixed order.
// Included once per device program, behind sample.cuh, whose body takes what does not fit here.
namespace sample {

struct DeviceBody : Body {
  static constexpr i32 kDigitBits = 12, kDigits = 1 << kDigitBits;
  static constexpr i32 kKeyBits = 2 * kDigitBits;
  static constexpr float kRange = 32;  // scores so far below the best share the lowest key: they weigh 1e-14
  static constexpr float kKeyWidth = kRange / (1 << kKeyBits);  // of scores
  static constexpr i32 kListed = 2048;
  static constexpr i32 kUnit = 128, kUnits = 4096;      // tokens that a warp takes at once; how many of them
  static constexpr i32 kAtOnce = arch::kWordsUnderWay;  // of a thread
  static_assert(kDigits % kConsumers == 0);

  // Calls f(token, score) for all tokens of a thread, in ascending order.
  template <class Row, class F>
  static void each(const Row& row, i32 vocab, F&& f) {
    const bool in_words = reinterpret_cast<u64>(row.logits.data) % 16 == 0;
    const i32 words = in_words ? vocab / 4 : 0;
    each_word(row, words, [&](i32 at, const float4& word) {
      if (at < words) each_of_word(row, 4 * at, word, f);
    });
#pragma unroll 1
    for (i32 i = 4 * words + i32(arch::thread()); i < vocab; i += kConsumers) f(i, row.score(Index{i}));
  }
  // Calls f(at, word) for all words of a thread, by whole warps; past the end with the last.
  template <class Row, class F>
  static void each_word(const Row& row, i32 words, F&& f) {
    const i32 me = i32(arch::thread()), lane = me % 32;
    float4 now[kAtOnce], next[kAtOnce];
    load(row, me, words, now);
#pragma unroll 1
    for (i32 begin = me; begin - lane < words; begin += kAtOnce * kConsumers) {
      load(row, begin + kAtOnce * kConsumers, words, next);
#pragma unroll
      for (i32 n = 0; n < kAtOnce; ++n) {
        if (const i32 at = begin + n * kConsumers; at - lane < words) f(at, now[n]);
        now[n] = next[n];
      }
    }
  }
  // A thread's words from `begin` on; past the end the last one.
  template <class Row>
  static void load(const Row& row, i32 begin, i32 words, float4 (&word)[kAtOnce]) {
    const auto* from = reinterpret_cast<const float4*>(row.logits.data);
#pragma unroll
    for (i32 n = 0; n < kAtOnce; ++n)
      if (words > 0) word[n] = from[min(begin + n * kConsumers, words - 1)];
  }
  template <class Row, class F>
  static void each_of_word(const Row& row, i32 first, const float4& word, F&& f) {
    float scores[4] = {word.x, word.y, word.z, word.w};
    if (row.penalised) {
#pragma unroll
      for (i32 k = 0; k < 4; ++k) scores[k] = row.penalise(Index{first + k}, scores[k]);
    }
    // Side by side: each is a chain of operations that wait for one another.
#pragma unroll
    for (i32 k = 0; k < 4; ++k) scores[k] = quotient(scores[k], row.temperature);
#pragma unroll
    for (i32 k = 0; k < 4; ++k) f(first + k, scores[k]);
  }

  static u32 key_of(float score, float top) {
    constexpr float kLast = (1 << kKeyBits) - 1;
    return u32(min(max((score - (top - kRange)) * (1 / kKeyWidth), 0.0f), kLast));
  }

  // What of a row may count: how many tokens there are, or what share of all weight they have, and once that is known, how
  // much.
  struct Limit {
    bool of_weight;
    float value;
  };

  // The search for a threshold: it lies among the `count` scores whose keys begin with `prefix`.
  template <class Block, class Row>
  struct Search {
    Block& block;
    const Row& row;
    Limit limit;
    u32* bins;     // [kDigits + 32]: scores by their next digit, and of each lane what does not count
    float* warps;  // [kWarps]
    u32 prefix = 0;
    i32 shift = kKeyBits;  // bits of a key behind the prefix
    i32 count = 0;
    float above = 0;  // the sum of those above them
    float mine = 0;   // of the thread's scores

    // Whether it is left; what an earlier filter has dropped is not.
    bool holds(u32 key, float score) const { return key >> shift == prefix && !(score < row.kept); }
    bool holds(float score) const { return holds(key_of(score, row.top), score); }
    bool is_first() const { return shift == kKeyBits; }

    // Goes on to the digit where the sum reaches the limit, or to the last that there is. `visit` calls a function with
    // each score of a thread.
    template <class Visit>
    void narrow(Visit&& visit) {
      count_by_digit(visit);
      float before = 0;
      i32 digit = estimate(before);
      if (limit.of_weight) before = settle(visit, digit);
      above += before, count = i32(bins[digit]);
      prefix = prefix << kDigitBits | u32(digit), shift -= kDigitBits;
      if (!limit.of_weight) mine = 0, visit([&](float score) { mine += holds(score) ? 1.0f : 0.0f; });
      block.sync();  // bins have been read
    }
    template <class Visit>
    void count_by_digit(Visit&& visit) {
      for (i32 d = i32(arch::thread()); d < kDigits; d += kConsumers) bins[d] = 0;
      block.sync();
      const u32 spare = u32(kDigits) + arch::thread() % 32;  // what does not count is added there
      u32 lowest = 0;           // where most may be: apart, as additions to one word wait for each other
      visit([&](float score) {  // without a branch, so that scores are worked out side by side
        const u32 key = key_of(score, row.top), digit = digit_of(key);
        const bool counts = holds(key, score);
        lowest += counts && digit == 0 ? 1 : 0;
        atomicAdd(&bins[counts && digit != 0 ? digit : spare], 1u);
      });
      if (lowest > 0) atomicAdd(&bins[0], lowest);
      block.sync();
    }
    u32 digit_of(u32 key) const { return key >> (shift - kDigitBits) & (kDigits - 1); }
    // What a score with this digit counts, as if it were in the middle.
    float worth(i32 digit) const {
      if (!limit.of_weight) return 1;
      const float key = float(prefix << kDigitBits | u32(digit)) + 0.5f;
      return row.weight_of_score(row.top - kRange + key * float(1u << (shift - kDigitBits)) * kKeyWidth);
    }
    // The digit by what digits are worth, and the sum of those above it, which is exact for counts. A thread has digits that
    // lie together, the first the highest.
    i32 estimate(float& before) {
      constexpr i32 kMine = kDigits / kConsumers;
      const i32 highest = kDigits - 1 - i32(arch::thread()) * kMine;
      float mine = 0;
      i32 some = kDigits;  // the lowest that has a score
      for (i32 i = 0; i < kMine; ++i) {
        const u32 number = bins[highest - i];
        if (number > 0) mine += float(number) * worth(highest - i), some = highest - i;
      }
      const float wanted =
          is_first() && limit.of_weight ? limit.value * block.reduce(Sum(), mine) : limit.value;
      const float until = sum_before(block, mine, warps);
      float sum = until;
      i32 found = -1;
      for (i32 i = 0; i < kMine && found < 0; ++i) {
        const u32 number = bins[highest - i];
        if (number == 0) continue;
        const float next = sum + float(number) * worth(highest - i);
        if (above + next >= wanted)
          found = highest - i;
        else
          sum = next;
      }
      const i32 digit = i32(block.reduce(Max(), float(found)));
      const i32 last = i32(block.reduce(Min(), float(some)));
      // Below all: what lies above the last is all but what that has.
      if (digit < 0) sum = block.reduce(Sum(), mine) - float(bins[last]) * worth(last), found = some;
      const i32 chosen = digit < 0 ? last : digit;
      before = block.reduce(Max(), found == chosen ? sum : 0.0f);
      return chosen;
    }
    // The digit by sums of weights; returns that of those above it. As a rule the estimate is right.
    template <class Visit>
    float settle(Visit&& visit, i32& digit) {
      const bool is_first_digit = is_first();
      for (i32 moved = 0;;) {
        float all = 0, higher = 0, here = 0, number = 0;
        visit([&](float score) {  // without a branch, so that scores are worked out side by side
          const u32 key = key_of(score, row.top);
          const bool counts = holds(key, score);
          const float weight = counts ? row.weight_of_score(score) : 0.0f;
          const i32 its = i32(digit_of(key));
          all += weight, higher += its > digit ? weight : 0.0f, here += its == digit ? weight : 0.0f;
          number += counts && its == digit ? 1.0f : 0.0f;
        });
        higher = block.reduce(Sum(), higher), here = block.reduce(Sum(), here);
        const float wanted = is_first_digit ? limit.value * block.reduce(Sum(), all) : limit.value;
        const i32 move = above + higher >= wanted ? 1 : above + higher + here < wanted ? -1 : 0;
        const i32 other = move == 0 || move == -moved ? digit : neighbour(digit, move);
        if (other == digit) {
          limit.value = wanted, mine = number;
          return higher;
        }
        digit = other, moved = move;
      }
    }
    // The next digit that has a score, up or down; the same where there is none.
    i32 neighbour(i32 digit, i32 step) const {
      for (i32 d = digit + step; d >= 0 && d < kDigits; d += step)
        if (bins[d] > 0) return d;
      return digit;
    }
    // The scores that are left, in place of the counts they were found by; at most kListed.
    template <class Visit>
    float* collect(Visit&& visit) {
      i32 at = i32(sum_before(block, mine, warps));
      auto* list = reinterpret_cast<float*>(bins);
      visit([&](float score) {
        if (holds(score)) list[at++] = score;
      });
      block.sync();
      return list;
    }
    // Among all scores of a list, as sample.cuh does.
    float finish(const float* list) {
      Listed<Row> listed{row, list, 0};
      listed.top = block.reduce(count, Max(), [&](Index i) { return listed.score(i); });
      return bisect(count, listed, limit.value - above);
    }
    template <class Scores>
    float bisect(i32 number, const Scores& scores, float most) const {
      return threshold(block, number, scores, most,
                       [&](Index i) { return limit.of_weight ? scores.weight(i) : 1.0f; });
    }
  };

  // Scores that lie on chip, as a row of their own.
  template <class Row>
  struct Listed {
    const Row& row;
    const float* scores;
    float top;

    float score(Index i) const { return scores[i.at]; }
    float weight(Index i) const { return row.weight_of_score(scores[i.at]); }
  };

  // As threshold of sample.cuh: digits of all scores until those beside the threshold fit on chip, then digits of these.
  template <class Block, class Row>
  static float find(Block& block, i32 vocab, const Row& row, const Limit& limit) {
    const Scratch before_it = block.scratch_now();
    auto* bins = reinterpret_cast<u32*>(block.scratch(kDigits + 32).data);
    Search<Block, Row> search{block, row, limit, bins, reinterpret_cast<float*>(block.scratch(kWarps).data)};
    const auto all = [&](auto&& f) { each(row, vocab, [&](i32, float score) { f(score); }); };
    do {
      search.narrow(all);
    } while (search.count > kListed && search.shift > 0);
    const float kept = search.count > kListed ? search.bisect(vocab, row, search.limit.value)
                                              : find_listed(search, search.collect(all), search.count);
    block.sync();
    block.give_back(before_it);
    return kept;
  }
  template <class Search>
  static float find_listed(Search& search, const float* list, i32 count) {
    static_assert(kDigits >= kListed);
    constexpr i32 kMine = kListed / kConsumers;
    const i32 me = i32(arch::thread());
    float mine[kMine];
#pragma unroll
    for (i32 n = 0; n < kMine; ++n) mine[n] = list[min(me + n * kConsumers, count - 1)];
    search.block.sync();
    const auto listed = [&](auto&& f) {
#pragma unroll
      for (i32 n = 0; n < kMine; ++n)
        if (me + n * kConsumers < count) f(mine[n]);
    };
    if (search.shift == 0 || search.count == 1) return search.finish(list);
    do {
      search.narrow(listed);
    } while (search.shift > 0 && search.count > 1);
    return search.finish(search.collect(listed));
  }

  // The sum of what threads before this one have.
  template <class Block>
  static float sum_before(Block& block, float mine, float* warps) {
    const i32 lane = i32(arch::thread() % 32), warp = i32(arch::thread() / 32);
    const float all = sum_to(mine);
    if (lane == 31) warps[warp] = all;
    block.sync();
    float sum = all - mine;
    for (i32 w = 0; w < warp; ++w) sum += warps[w];
    block.sync();  // the next call writes them
    return sum;
  }
  // Of the lanes up to this one.
  static float sum_to(float value) {
    const i32 lane = i32(arch::thread() % 32);
#pragma unroll
    for (i32 step = 1; step < 32; step *= 2) {
      const float other = __shfl_sync(~0u, value, max(lane - step, 0));
      if (lane >= step) value += other;
    }
    return value;
  }

  // The lane in which the running sum of the lanes passes `wanted`, or the last that has something; -1: none has.
  // before: of the lanes ahead of it.
  static i32 passing(float mine, float wanted, float& before) {
    const float sum = sum_to(mine);
    const u32 some = __ballot_sync(~0u, mine > 0),
              past = __ballot_sync(~0u, mine > 0 && before + sum > wanted);
    if (some == 0) return -1;
    const u32 first = past != 0 ? past & (~past + 1) : highest(some);
    const i32 lane = __popc(first - 1);
    before += __shfl_sync(~0u, sum - mine, lane);
    return lane;
  }
  static u32 highest(u32 bits) {
    while (bits & (bits - 1)) bits &= bits - 1;
    return bits;
  }

  // A lane's four tokens of a unit, and their weights: past the end the last ones, which weigh nothing.
  template <class Row>
  static float4 word_of(const Row& row, i32 vocab, i32 unit) {
    const i32 first = unit * kUnit + i32(arch::thread() % 32) * 4;
    return *reinterpret_cast<const float4*>(row.logits.data + 4 * i64(min(first, vocab - 4)));
  }
  template <class Row>
  static float4 weights_of(const Row& row, i32 vocab, i32 unit, const float4& word) {
    const i32 first = unit * kUnit + i32(arch::thread() % 32) * 4;
    float weights[4];
    each_of_word(row, min(first, vocab - 4), word, [&, k = 0](i32, float score) mutable {
      weights[k++] = first < vocab ? row.weight_of_score(score) : 0.0f;
    });
    return {weights[0], weights[1], weights[2], weights[3]};
  }
  static float sum_of(const float4& all) { return (all.x + all.y) + (all.z + all.w); }

  // As choose of sample.cuh.
  template <class Block, class Row>
  static i32 choose_at(Block& block, i32 vocab, const Row& row, float share) {
    const i32 units = (vocab + kUnit - 1) / kUnit, warp = i32(arch::thread() / 32);
    if (vocab % 4 != 0 || units > kUnits || reinterpret_cast<u64>(row.logits.data) % 16 != 0)
      return choose(block, vocab, row, share);
    const Scratch before_it = block.scratch_now();
    auto* sums = reinterpret_cast<float*>(block.scratch(units + 1).data);
    each_word(row, vocab / 4, [&](i32 at, const float4& word) {
      const float sum = block.over_warp(Sum(), sum_of(weights_of(row, vocab, at / 32, word)));
      if (at % 32 == 0) sums[at / 32] = sum;
    });
    block.sync();
    if (warp == 0) {
      const i32 token = search_units(row, vocab, sums, units, share);
      if (arch::thread() == 0) reinterpret_cast<i32*>(sums)[units] = token;
    }
    block.sync();
    const i32 token = reinterpret_cast<const i32*>(sums)[units];
    block.sync();
    block.give_back(before_it);
    return token;
  }
  // By one warp: which share of the units, which unit, which lane of it, which token.
  template <class Row>
  static i32 search_units(const Row& row, i32 vocab, const float* sums, i32 units, float share) {
    const i32 lane = i32(arch::thread() % 32), each = (units + 31) / 32;
    float mine = 0;
    for (i32 i = lane * each; i < min((lane + 1) * each, units); ++i) mine += sums[i];
    const float wanted = __shfl_sync(~0u, sum_to(mine), 31) * share;
    float before = 0;
    const i32 part = passing(mine, wanted, before);
    if (part < 0) return 0;  // the scores are not numbers
    i32 unit = part * each;
    for (i32 i = unit; i < min((part + 1) * each, units); ++i) {
      if (!(sums[i] > 0)) continue;
      if (i != unit && sums[unit] > 0) before += sums[unit];
      unit = i;
      if (before + sums[i] > wanted) break;
    }
    const float4 weights = weights_of(row, vocab, unit, word_of(row, vocab, unit));
    const i32 at = passing(sum_of(weights), wanted, before);
    i32 token = 0;
    const float four[4] = {weights.x, weights.y, weights.z, weights.w};
    bool past = false;
#pragma unroll
    for (i32 k = 0; k < 4; ++k) {
      if (past || !(four[k] > 0)) continue;
      token = unit * kUnit + lane * 4 + k, before += four[k], past = before > wanted;
    }
    return __shfl_sync(~0u, token, max(at, 0));
  }

  template <class Block, class Row>
  static Best best_of(Block& block, i32 vocab, const Row& row) {
    if (!row.penalised) return block.argmax(row.logits, vocab);
    float value = identity(Max());
    i32 index = vocab;
    each(row, vocab, [&](i32 i, float score) {
      if (score > value) value = score, index = i;
    });
    return block.best_of(value, index, vocab);
  }

  template <class Block, class Row>
  static i32 pick(Block& block, i32 vocab, const StepSequence& options, u32 draw, Row& row) {
    const Best best = best_of(block, vocab, row);
    if (!(options.temperature > 0)) return best.index;
    row.top = row.penalised ? best.value : quotient(best.value, row.temperature);
    const bool by_count = options.top_k > 0 && options.top_k < vocab, by_weight = options.top_p < 1;
#pragma unroll 1
    for (i32 n = by_count ? 0 : 1; n < (by_weight ? 2 : 1); ++n) {
      const Limit limit{n == 1, n == 1 ? options.top_p : float(options.top_k)};
      row.kept = max(row.kept, find(block, vocab, row, limit));
    }
    row.min_weight = options.min_p;
    return choose_at(block, vocab, row, uniform_draw(options.seed, draw));
  }

  template <class Block>
  static void run(Block& block, const Sample& a, const TileCoord& t) {
    run_with<DeviceBody>(block, a, t);
  }
};

}  // namespace sample
