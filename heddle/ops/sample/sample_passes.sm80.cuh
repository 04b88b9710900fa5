// The choice on a GPU from sm_80 on, in a few passes over the scores, 16 bytes a thread at a time.
// A threshold is searched by digits of a key that ascends with the score: a pass counts scores by the next digit, which
// tells about where it lies; another sums the weights above it and keeps what lies beside it, which fits on chip as a rule,
// where it is searched on. The token is searched in sums of units of tokens, which one more pass makes. All sums have a fixed
// order. A pass takes as long as one SM executes 10 to 20 instructions for each score.
// Included once per device program, behind sample.cuh, whose body takes what does not fit here.
namespace sample {

struct Passes : Body {
  static constexpr i32 kDigitBits = 12, kDigits = 1 << kDigitBits;
  static constexpr i32 kKeyBits = 23;
  static constexpr float kFirstKey =
      1 << kKeyBits;                   // floats from here to its double are whole numbers, and so are keys
  static constexpr float kRange = 32;  // what is e^32 times less likely than the best has the lowest key
  static constexpr i32 kSlots = kDigits / Team::size();  // of scores that a thread keeps
  static constexpr i32 kFew = 256;                       // scores that are compared each with each
  static constexpr i32 kAtOnce = arch::kWordsUnderWay;   // of a thread
  static constexpr i32 kUnit = 128 * kAtOnce,
                       kUnits = 4096;  // tokens that a warp takes at once; how many of them
  static_assert(kDigits % Team::size() == 0 && kSlots % 4 == 0);

  // Calls f(token, score) for all tokens of a thread, in ascending order; past the end, too, with minus infinity.
  template <class Row, class F>
  static void each(const Row& row, i32 vocab, F&& f) {
    const bool in_words = reinterpret_cast<u64>(row.logits.data) % 16 == 0;
    const i32 words = in_words ? vocab / 4 : 0;
    each_word(
        row, words,
        [&](i32 at, const float4& scores) {
          f(4 * at, scores.x), f(4 * at + 1, scores.y), f(4 * at + 2, scores.z), f(4 * at + 3, scores.w);
        },
        [](i32) {});
#pragma unroll 1
    for (i32 i = 4 * words + Team::thread(); i < vocab; i += Team::size()) f(i, row.score(Index{i}));
  }
  // Calls f(at, scores) for all words of a thread, and done(unit) behind those of a unit, by whole warps. Without a branch
  // between words, so that they are worked on side by side.
  template <class Row, class F, class Done>
  static void each_word(const Row& row, i32 words, F&& f, Done&& done) {
    const i32 lane = Team::lane();
    i32 unit = Team::warp(), at = unit * kAtOnce * 32 + lane;
    float4 word[kAtOnce], next[kAtOnce];
#pragma unroll
    for (i32 n = 0; n < kAtOnce; ++n) word[n] = word_of(row, words, at + n * 32);
#pragma unroll 1
    for (; at - lane < words; at += kAtOnce * Team::size(), unit += Team::warps()) {
#pragma unroll
      for (i32 n = 0; n < kAtOnce; ++n) next[n] = word_of(row, words, at + kAtOnce * Team::size() + n * 32);
      if (row.penalised) {
#pragma unroll
        for (i32 n = 0; n < kAtOnce; ++n) word[n] = penalised(row, min(at + n * 32, words - 1), word[n]);
      }
#pragma unroll
      for (i32 n = 0; n < kAtOnce; ++n) {
        f(at + n * 32, word[n]);
        word[n] = next[n];
      }
      done(unit);
    }
  }
  template <class Row>
  static float4 word_of(const Row& row, i32 words, i32 at) {
    const float none = identity(Max());
    float4 word = {none, none, none, none};
    if (at < words) word = reinterpret_cast<const float4*>(row.logits.data)[at];
    return word;
  }
  template <class Row>
  static float4 penalised(const Row& row, i32 at, const float4& word) {
    const u32 seen = u32(row.seen.get_int(at / 8)) >> 4 * (at % 8);
    const auto one = [&](i32 k, float score) { return seen >> k & 1 ? row.repeated(score) : score; };
    return {one(0, word.x), one(1, word.y), one(2, word.z), one(3, word.w)};
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
    u32*
        bins;  // [kDigits + 1]: scores by their next digit, and all others; then what is kept, [slot, thread]
    float* warps;       // [Team::warps()]
    float keys_of_one;  // that scores 1 apart are apart
    u32 prefix = 0;
    i32 shift = kKeyBits;  // bits of a key behind the prefix
    i32 count = 0;
    i32 mine = 0;       // of the thread's scores; kept if they fit
    bool fits = false;  // of all threads
    float above = 0;    // the sum of those above them

    float* slots() const { return reinterpret_cast<float*>(bins); }
    bool is_first() const { return shift == kKeyBits; }
    i32 behind() const { return max(shift - kDigitBits, 0); }  // bits behind the next digit
    i32 digits() const { return 1 << (shift - behind()); }
    u32 with(i32 digit) const { return (prefix << (shift - behind())) + u32(digit); }
    // The lowest key with a digit.
    float first_key(i32 digit) const { return kFirstKey + float(with(digit) << behind()); }
    // Ascends with the score, from kFirstKey up to the best's.
    float key_of(float score) const {
      return max(fma(score - row.top, keys_of_one, 2 * kFirstKey - 1), kFirstKey);
    }
    static u32 bits_of(float key) { return __builtin_bit_cast(u32, key); }

    // Goes on to the digit where the sum reaches the limit, or to the last that there is. `visit` calls a function with
    // each score of a thread.
    template <class Visit>
    void narrow(Visit&& visit) {
      i32 digit = 0;
      float before = 0;
      for (i32 move = 0;;) {
        count_by_digit(visit);
        const i32 from = digit;
        digit = move == 0 ? estimate(before) : neighbour(from, move);
        count = i32(bins[digit]);
        block.sync();  // bins have been read
        const Sums sums = keep(visit, digit);
        if (!limit.of_weight) break;  // counts are what they are
        before = sums.higher;
        const float wanted = is_first() ? limit.value * sums.all : limit.value;
        const i32 next = above + before >= wanted ? 1 : above + before + sums.here < wanted ? -1 : 0;
        if (next == 0 || next == -move || (move != 0 && digit == from)) {
          limit.value = wanted;
          break;
        }
        move = next;
      }
      prefix = with(digit), shift = behind(), above += before;
    }
    template <class Visit>
    void count_by_digit(Visit&& visit) {
      for (i32 d = Team::thread(); d < kDigits; d += Team::size()) bins[d] = 0;
      block.sync();
      const u32 first = bits_of(first_key(0)), bits = u32(behind()), end = u32(digits());
      visit([&](float score) {  // without a branch, so that scores are worked out side by side
        const u32 digit = (bits_of(key_of(score)) - first) >> bits;  // of another prefix: not below the end
        atomicAdd(&bins[score < row.kept || digit >= end ? u32(kDigits) : digit], 1u);
      });
      block.sync();
    }
    // What a score with this digit counts, as if it were in the middle.
    float worth(i32 digit) const {
      if (!limit.of_weight) return 1;
      const float middle = first_key(digit) + 0.5f * float(1u << behind());
      return weight_of((middle - 2 * kFirstKey) * (kRange / kFirstKey));
    }
    // The digit by what digits are worth, and the sum of those above it, which is exact for counts. A thread has digits that
    // lie together, the first the highest.
    i32 estimate(float& before) {
      constexpr i32 kMine = kDigits / Team::size();
      const i32 highest = kDigits - 1 - Team::thread() * kMine;
      float worths[kMine], all = 0, of_last = 0;
      i32 last = kDigits;  // the lowest that has a score
#pragma unroll
      for (i32 i = 0; i < kMine; i += 4) {
        const uint4 four = *reinterpret_cast<const uint4*>(bins + highest - i - 3);
        const u32 numbers[4] = {four.w, four.z, four.y, four.x};
#pragma unroll
        for (i32 k = 0; k < 4; ++k) {
          const i32 digit = highest - i - k;
          const float its = float(numbers[k]) * worth(digit);
          worths[i + k] = its, all += its;
          if (numbers[k] > 0) last = digit, of_last = its;
        }
      }
      const float wanted =
          is_first() && limit.of_weight ? limit.value * block.reduce(Sum(), all) : limit.value;
      float sum = sum_before(block, all, warps), until = 0;
      i32 found = -1;
#pragma unroll
      for (i32 i = 0; i < kMine; ++i) {
        const float next = sum + worths[i];
        if (found < 0 && worths[i] > 0 && above + next >= wanted) found = highest - i, until = sum;
        sum = next;
      }
      const i32 digit = i32(block.reduce(Max(), float(found)));
      if (digit >= 0) {
        before = block.reduce(Max(), found == digit ? until : 0.0f);
        return digit;
      }
      // Below all: what lies above the last is all but what that has.
      const i32 lowest = i32(block.reduce(Min(), float(last)));
      before = block.reduce(Max(), last == lowest ? sum - of_last : 0.0f);
      return lowest;
    }
    // The next digit that has a score, up or down; the same where there is none.
    i32 neighbour(i32 digit, i32 step) const {
      for (i32 d = digit + step; d >= 0 && d < kDigits; d += step)
        if (bins[d] > 0) return d;
      return digit;
    }

    struct Sums {
      float all, higher, here;  // of weights: of all scores, of higher digits, of this one
    };
    // Keeps the scores with a digit in the place of bins.
    template <class Visit>
    Sums keep(Visit&& visit, i32 digit) {
      const float begin = first_key(digit), end = first_key(digit + 1), last = first_key(digits());
      const i32 me = Team::thread();
      i32 next = me;  // the slot, and the thread's place in it
      Sums sums{};
      visit([&](float score) {
        const float key = key_of(score), weight = row.weight_of_kept(score);
        const bool is_here = begin <= key && key < end, is_kept = is_here && !(score < row.kept);
        sums.all += weight, sums.here += is_here ? weight : 0.0f;
        sums.higher += end <= key && key < last ? weight : 0.0f;
        if (is_kept && next < kDigits) slots()[next] = score;
        if (is_kept) next += Team::size();
      });
      mine = (next - me) / Team::size();
      fits = block.reduce(Max(), float(mine)) <= kSlots;
      return {block.reduce(Sum(), sums.all), block.reduce(Sum(), sums.higher),
              block.reduce(Sum(), sums.here)};
    }

    // The threshold, if what is left fits.
    float finish() {
      float left[kSlots];
      take(left);
      while (shift > 0 && count > kFew) {
        const i32 number = mine;
        narrow([&](auto&& f) {
#pragma unroll
          for (i32 n = 0; n < kSlots; ++n)
            if (n < number) f(left[n]);
        });
        take(left);
      }
      float* list = slots();
      const i32 begin = i32(sum_before(block, float(mine), warps));
#pragma unroll
      for (i32 n = 0; n < kSlots; ++n)
        if (n < mine) list[begin + n] = left[n];
      block.sync();
      // A score stays if what is above it has not reached the limit, and the best of them all does.
      float lowest = row.top;
#pragma unroll
      for (i32 n = 0; n < kSlots; ++n)
        if (n < mine && stays(list, left[n])) lowest = min(lowest, left[n]);
      return block.reduce(Min(), lowest);
    }
    void take(float (&left)[kSlots]) const {
#pragma unroll
      for (i32 n = 0; n < kSlots; ++n) left[n] = n < mine ? slots()[n * Team::size() + Team::thread()] : 0.0f;
      block.sync();
    }
    bool stays(const float* list, float score) const {
      float sum = 0;
      bool is_best = true;
#pragma unroll 1
      for (i32 i = 0; i < count; ++i) {
        const bool is_higher = score < list[i];
        sum += is_higher ? limit.of_weight ? row.weight_of_kept(list[i]) : 1.0f : 0.0f;
        is_best = is_best && !is_higher;
      }
      return is_best || above + sum < limit.value;
    }
  };

  // As threshold of sample.cuh: digits of all scores until those beside the threshold fit on chip, then digits of these.
  template <class Block, class Row>
  static float find(Block& block, i32 vocab, const Row& row, const Limit& limit) {
    const ScratchMark before_it = block.scratch_mark();
    auto* bins = reinterpret_cast<u32*>(block.scratch(kDigits + 4).data);
    auto* warps = reinterpret_cast<float*>(block.scratch(Team::warps()).data);
    Search<Block, Row> search{block, row,
                              limit, bins,
                              warps, kFirstKey / kRange * (limit.of_weight ? row.inverse_temperature : 1.0f)};
    do {
      search.narrow([&](auto&& f) { each(row, vocab, [&](i32, float score) { f(score); }); });
    } while (!search.fits && search.shift > 0);
    const float kept =
        search.fits ? search.finish() : threshold(block, vocab, row, search.limit.value, [&](auto i) {
          return limit.of_weight ? row.weight(i) : 1.0f;
        });
    block.sync();
    block.release(before_it);
    return kept;
  }

  // The sum of what threads before this one have.
  template <class Block>
  static float sum_before(Block& block, float mine, float* warps) {
    const i32 lane = Team::lane(), warp = Team::warp();
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
    const i32 lane = Team::lane();
#pragma unroll
    for (i32 step = 1; step < 32; step *= 2) {
      const float other = Team::from_lane(value, max(lane - step, 0));
      if (lane >= step) value += other;
    }
    return value;
  }

  // The lane in which the running sum of the lanes passes `wanted`, or the last that has something; -1: none has.
  // before: of the lanes ahead of it.
  static i32 passing(float mine, float wanted, float& before) {
    const float sum = sum_to(mine);
    const u32 some = Team::vote(mine > 0), past = Team::vote(mine > 0 && before + sum > wanted);
    if (some == 0) return -1;
    const u32 first = past != 0 ? past & (~past + 1) : highest(some);
    const i32 lane = __popc(first - 1);
    before += Team::from_lane(sum - mine, lane);
    return lane;
  }
  static u32 highest(u32 bits) {
    while (bits & (bits - 1)) bits &= bits - 1;
    return bits;
  }

  // The first of [begin, end) at which the running sum passes `wanted`, or the last that has something; before: of those
  // ahead of it.
  template <class SumOf>
  static i32 first_past(i32 begin, i32 end, float wanted, float& before, SumOf&& sum_of) {
    i32 found = begin;
    float its = 0;
#pragma unroll 1
    for (i32 i = begin; i < end; ++i) {
      const float sum = sum_of(i);
      if (!(sum > 0)) continue;
      before += its, found = i, its = sum;
      if (before + sum > wanted) break;
    }
    return found;
  }

  // A row as units of tokens and, behind them, the tokens that fill no word.
  template <class Block, class Row>
  struct Units {
    Block& block;
    const Row& row;
    i32 vocab, words = vocab / 4, full = (4 * words + kUnit - 1) / kUnit;

    i32 number() const { return full + (vocab % 4 != 0 ? 1 : 0); }
    void sum(float* sums) const {
      const i32 lane = Team::lane();
      float mine = 0;
      each_word(
          row, words, [&](i32, const float4& scores) { mine += sum_of(weights_of(row, scores)); },
          [&](i32 unit) {
            mine = Team::over_warp(Sum(), mine);
            if (lane == 0) sums[unit] = mine;
            mine = 0;
          });
      if (number() == full || Team::thread() >= 32) return;
      mine = Team::over_warp(Sum(), rest());
      if (lane == 0) sums[full] = mine;
    }
    // The weight of a lane's token behind all words.
    float rest() const {
      const i32 token = 4 * words + Team::lane();
      return token < vocab ? row.weight(Index{token}) : 0.0f;
    }
    // By one warp: which share of the units, which unit, which words of it, which lane, which token.
    i32 search(const float* sums, float share) const {
      float wanted, before;
      const i32 unit = part_past(sums, number(), share, wanted, before);
      if (unit < 0) return 0;  // the scores are not numbers
      if (unit == full) return 4 * words + max(passing(rest(), wanted, before), 0);
      return token_past<kAtOnce>(block, unit * kAtOnce * 32, wanted, before, [&](i32 at) {
        const float4 scores = word_of(row, words, at);
        return weights_of(row, row.penalised ? penalised(row, min(at, words - 1), scores) : scores);
      });
    }
  };

  template <class Row>
  static float4 weights_of(const Row& row, const float4& scores) {
    return {row.weight_of_score(scores.x), row.weight_of_score(scores.y), row.weight_of_score(scores.z),
            row.weight_of_score(scores.w)};
  }
  static float sum_of(const float4& all) { return (all.x + all.y) + (all.z + all.w); }

  // By one warp: of `number` sums, the one in which the running sum passes a share of them all, or the last that has something;
  // -1: none has. before: of those ahead of it.
  static i32 part_past(const float* sums, i32 number, float share, float& wanted, float& before) {
    const i32 lane = Team::lane(), each = (number + 31) / 32;
    const auto end = [&](i32 part) { return min((part + 1) * each, number); };
    float mine = 0;
    before = 0;
    for (i32 i = lane * each; i < end(lane); ++i) mine += sums[i];
    wanted = Team::from_lane(sum_to(mine), 31) * share;
    const i32 part = passing(mine, wanted, before);
    if (part < 0) return -1;
    return first_past(part * each, end(part), wanted, before, [&](i32 i) { return sums[i]; });
  }
  // By one warp: the token at which the running sum passes `wanted`, among those of kNumber words for each lane from word
  // `first` on.
  template <i32 kNumber, class Block, class WeightsAt>
  static i32 token_past(Block& block, i32 first, float wanted, float before, WeightsAt&& weights_at) {
    const i32 lane = Team::lane();
    float4 all[kNumber];
#pragma unroll
    for (i32 n = 0; n < kNumber; ++n) all[n] = weights_at(first + n * 32 + lane);
    float mine = 0;
#pragma unroll
    for (i32 n = 0; n < kNumber; ++n) {
      const float sum = Team::over_warp(Sum(), sum_of(all[n]));
      mine = lane == n ? sum : mine;
    }
    const i32 n = max(passing(mine, wanted, before), 0);
    float4 weights = all[0];
#pragma unroll
    for (i32 other = 1; other < kNumber; ++other)
      if (other == n) weights = all[other];
    const i32 at = passing(sum_of(weights), wanted, before);
    const i32 k = first_past(0, 4, wanted, before, [&](i32 i) {
      return i < 2 ? (i < 1 ? weights.x : weights.y) : i < 3 ? weights.z : weights.w;
    });
    return Team::from_lane(4 * (first + n * 32 + lane) + k, max(at, 0));
  }

  // As choose of sample.cuh.
  template <class Block, class Row>
  static i32 choose_at(Block& block, i32 vocab, const Row& row, float share) {
    const Units<Block, Row> units{block, row, vocab};
    if (units.number() > kUnits || reinterpret_cast<u64>(row.logits.data) % 16 != 0)
      return choose(block, vocab, row, share);
    const ScratchMark before_it = block.scratch_mark();
    auto* sums = reinterpret_cast<float*>(block.scratch(units.number() + 1).data);
    units.sum(sums);
    block.sync();
    auto* chosen = reinterpret_cast<i32*>(sums + units.number());
    if (Team::warp() == 0) {
      const i32 token = units.search(sums, share);
      if (Team::thread() == 0) *chosen = token;
    }
    block.sync();
    const i32 token = *chosen;
    block.sync();
    block.release(before_it);
    return token;
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
  static i32 pick(Block& block, const Sample& a, i32, const StepSequence& options, u32 draw, Row& row) {
    const i32 vocab = a.logits.last();
    const Best best = best_of(block, vocab, row);
    if (!(options.temperature > 0)) return best.index;
    row.top = best.value;
    const bool by_count = options.top_k > 0 && options.top_k < vocab, by_weight = options.top_p < 1;
#pragma unroll 1
    for (i32 n = by_count ? 0 : 1; n < (by_weight ? 2 : 1); ++n) {
      const Limit limit{n == 1, n == 1 ? options.top_p : float(options.top_k)};
      row.kept = max(row.kept, find(block, vocab, row, limit));
    }
    row.min_weight = options.min_p;
    return choose_at(block, vocab, row, uniform_draw(options.seed, draw));
  }
};

}  // namespace sample
