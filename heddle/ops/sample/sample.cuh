// Tile body of sample. Included once per target, inside its namespace.
//
// It does not sort. Every filter keeps the scores from a threshold on, and a sum over the scores above a value tells on which side
// of it the threshold lies. So halving a range of values finds it with reductions alone, whose order is fixed.
namespace sample {

constexpr float kLowest = -3e38f;
constexpr float kSharpest =
    1e30f;  // the largest inverse temperature: its products with scores, and with 0, are numbers

#include "heddle/ops/sample/score_edits.cuh"

// Scores of one row, as functions of an index. A temperature changes no order, only what a score weighs.
template <class View>
struct Scores {
  View logits;
  ScoreEditor<View> editor;
  float inverse_temperature;
  float top = 0;         // the largest score
  float kept = kLowest;  // scores below it are dropped
  float min_weight = 0;  // and so are those whose weight is below this

  template <class Index>
  auto score(Index i) const {
    return editor.score(i, logits.load(i));
  }
  // The probability but for a factor; 0 if the token is dropped.
  template <class Index>
  auto weight(Index i) const {
    return weight_of_score(score(i));
  }
  template <class Value>
  Value weight_of_score(Value score) const {
    const Value weight = weight_of_kept(score);
    return where_less(weight, Value(min_weight), Value(0.0f), weight);
  }
  template <class Value>
  Value weight_of_kept(Value score) const {
    return where_less(score, Value(kept), Value(0.0f), weight_of((score - top) * inverse_temperature));
  }
};

// Where the threshold of a filter lies. The scores above `low` sum to the filter's limit or more, those above `high` to less. All
// scores that are not below the threshold stay, so those that are equal to the last one kept stay with it.
struct Range {
  static constexpr i32 kFirstHalvings = 12, kMoreHalvings = 3;  // between looks for scores inside

  float low, high;

  float middle() const { return 0.5f * low + 0.5f * high; }
  void halve(float at, float sum, float limit) { (sum < limit ? high : low) = at; }
  bool is_one() const {
    return !(middle() > low && middle() < high);
  }  // no float lies inside, or one is a NaN

  // The threshold, by halving until no score lies inside. sum_above(t): what the scores above t sum to.
  template <class SumAbove, class HasInside>
  float find(float limit, SumAbove&& sum_above, HasInside&& has_inside) {
    for (i32 times = kFirstHalvings;; times = kMoreHalvings) {
      for (i32 i = 0; i < times; ++i) {
        const float at = middle();
        halve(at, sum_above(at), limit);
      }
      if (is_one() || !has_inside(*this)) return high;
    }
  }
};

// Plus infinity for what is no score: NaN and plus infinity. So the best score shows that there was one.
template <class Value>
Value shown(Value score) {
  return where_less(score, Value(kInfinity), score, Value(kInfinity));
}
// False if the best score, of scores as shown() gives them, says that no token can be chosen.
inline bool is_choice(const Best& best) {
  return best.value > -kInfinity && best.value < kInfinity;
}

struct Body {
  // The threshold of a filter that sums counted(i) over the scores of a row.
  template <class Block, class Row, class Counted>
  static float threshold(Block& block, i32 vocab, const Row& row, float limit, Counted&& counted) {
    const auto sum_above = [&](float t) {
      return block.reduce(vocab, Sum(), [&](auto i) {
        auto count = counted(i);
        using Value = decltype(count);
        return where_less(Value(t), row.score(i), count, Value(0.0f));
      });
    };
    const float lowest = block.reduce(vocab, Min(), [&](auto i) {
      auto v = row.score(i);
      using Value = decltype(v);
      return where_less(Value(kLowest), v, v, Value(row.top));
    });
    if (sum_above(lowest) < limit) return lowest;
    Range range{lowest, row.top};
    return range.find(limit, sum_above, [&](const Range& in) {
      return block.reduce(vocab, Max(), [&](auto i) {
        auto v = row.score(i);
        using Value = decltype(v);
        return where_less(Value(in.low), v, where_less(v, Value(in.high), Value(1.0f), Value(0.0f)),
                          Value(0.0f));
      }) > 0;
    });
  }

  // The token at which the running sum of weights, in the order of tokens, passes `share` of the whole.
  template <class Block, class Row>
  static i32 choose(Block& block, i32 vocab, const Row& row, float share) {
    auto weight_from = [&](i32 begin, i32 end) {
      return block.reduce(end - begin, Sum(), [&](auto i) { return row.weight(i + begin); });
    };
    const float wanted = weight_from(0, vocab) * share;
    i32 begin = 0, end = vocab;
    for (float before = 0; end - begin > 1;) {
      const i32 middle = begin + (end - begin) / 2;
      const float part = weight_from(begin, middle);
      if (before + part > wanted) {
        end = middle;
      } else {
        begin = middle;
        before += part;
      }
    }
    if (weight_from(begin, begin + 1) > 0) return begin;
    // Sums of parts round differently, so the search may end at a token that was dropped: take the next kept one, or the last.
    const float next = block.reduce(vocab, Min(), [&](auto i) {
      auto at = block.index(i);
      using Value = decltype(at);
      at = where_less(at, Value(float(begin)), Value(float(vocab)), at);
      return where_less(Value(0.0f), row.weight(i), at, Value(float(vocab)));
    });
    if (next < float(vocab)) return i32(next);
    const float last = block.reduce(vocab, Max(), [&](auto i) {
      auto at = block.index(i);
      using Value = decltype(at);
      return where_less(Value(0.0f), row.weight(i), at, Value(-1.0f));
    });
    return last >= 0 ? i32(last) : 0;
  }

  template <class Block, class Row>
  static i32 pick(Block& block, const Sample& a, i32, const StepSequence& options, u32 draw, Row& row) {
    const i32 vocab = a.logits.last();
    const Best best = block.argmax(vocab, [&](auto i) { return shown(row.score(i)); });
    if (!is_choice(best)) return StepArrays::kNoToken;
    if (!(options.temperature > 0)) return best.index;
    row.top = best.value;
    if (options.top_k > 0 && options.top_k < vocab)
      row.kept = threshold(block, vocab, row, float(options.top_k),
                           [&](auto i) { return block.index(i) * 0.0f + 1.0f; });
    if (options.top_p < 1) {
      const float all = block.reduce(vocab, Sum(), [&](auto i) { return row.weight(i); });
      row.kept = threshold(block, vocab, row, options.top_p * all, [&](auto i) { return row.weight(i); });
    }
    row.min_weight = options.min_p;
    return choose(block, vocab, row, uniform_draw(options.seed, draw));
  }

  // A sequence's part of the record. Reads of its arrays may be slow, while the host's part, which has their shape, is near. So it
  // reads them together, before it writes anything.
  template <class View>
  struct Record {
    View arrays;
    StepArrays at;
    i32 s, row;
    i32 draw, position, start;

    Record(View words, const StepShape& shape, i32 sequence, i32 its_row)
        : arrays(words), at(shape), s(sequence), row(its_row) {
      draw = arrays.get_int(i32(at.draws) + s);
      position = arrays.get_int(i32(at.position) + row), start = arrays.get_int(i32(at.start) + s);
    }
    void set(i64 word, i32 value) { arrays.set_int(i32(word), value); }
    void move_on(i32 row_count, i32 token) {
      set(at.sampled + s, token), set(at.draws + s, i32(u32(draw) + 1));
      set(at.history_of(s) + u32(draw) % u32(StepArrays::kHistory), token);
      if (row_count == 1)
        set(row, token < 0 ? 0 : token), set(at.position + row, position + 1), set(at.start + s, start + 1);
      if (at.words == 0 || token == StepArrays::kNoToken) return;
      const i64 word = at.seen_of(s) + token / 32;
      set(word, i32(u32(arrays.get_int(i32(word))) | 1u << (token % 32)));
    }
  };

  template <class Block>
  static void run(Block& block, const Sample& a, const TileCoord& t) {
    run_with<Body>(block, a, t);
  }
  // Chooser: picks the token of a row, by its place among the wanted ones.
  template <class Chooser, class Block>
  static void run_with(Block& block, const Sample& a, const TileCoord& t) {
    block.inputs();
    const StepHost& host = block.host(a.step);
    auto record = block.row(a.state), arrays = record.from(i64(sizeof(StepDevice)));
    using View = decltype(arrays);
    const i32 steps = record.get_int(StepDevice::kStepsWord);
    for (i32 m = t[0]; m < t[1]; ++m) {
      const i32 row = host.wanted_rows()[m], s = host.row_sequence()[row];
      const StepSequence& options = *host.sequence(s);
      if (row != options.row_begin + options.row_count - 1) continue;  // wanted for its logits only
      Record<View> own(arrays, host.shape, s, row);
      Scores<View> scores{block.row(a.logits, m),
                          ScoreEditor<View>::of(block, host, s, a.edits, a.masks, arrays),
                          min(quotient(1.0f, options.temperature), kSharpest)};
      const i32 token = Chooser::pick(block, a, m, options, u32(own.draw), scores);
      block.sync();
      if (scores.editor.edited && token != StepArrays::kNoToken) {
        auto& counts = scores.editor.counts;
        counts.set(token, max(counts.get(token), 0.0f) + 1.0f);
      }
      own.move_on(options.row_count, token);
    }
    if (t[0] == 0) record.set_int(StepDevice::kStepsWord, steps + 1);
  }
};

}  // namespace sample
