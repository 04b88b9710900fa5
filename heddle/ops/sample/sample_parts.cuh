// Tile body of sample_parts. Included once per target, inside its namespace.
namespace sample_parts {

constexpr float kNone = __builtin_bit_cast(float, 0xff800000);
constexpr float kSharpest = 1e30f;  // the largest inverse temperature, as in sample.cuh

#include "heddle/ops/sample/score_edits.cuh"

struct Body {
  static constexpr i32 kSize = ScoreSlices::kSize, kBlock = ScoreSlices::kBlock;

  // A sequence's row, and what its scores and their weights depend on.
  template <class View>
  struct Row {
    View logits;
    ScoreEditor<View> editor;
    i32 vocab;
    bool draws, drops;
    float inverse_temperature;

    // Plus infinity for what is no score, as in sample.cuh.
    template <class Index>
    auto score(Index i) const {
      auto score = editor.score(i, logits.load(i));
      using Value = decltype(score);
      return where_less(score, Value(-kNone), score, Value(-kNone));
    }
  };

  // Sorts scores on chip in descending order, one value after the other. The rest of the slice is minus infinity.
  template <class Block, class View>
  static void sort(Block& block, View scores, View out) {
    float last = -kNone;
    for (i32 at = 0; at < kSize;) {
      const float next = block.reduce(kSize, Max(), [&](auto i) {
        auto v = scores.load(i);
        using Value = decltype(v);
        return at == 0 ? v : where_less(v, Value(last), v, Value(kNone));
      });
      const float count = block.reduce(kSize, Sum(), [&](auto i) {
        auto v = scores.load(i);
        using Value = decltype(v);
        return where_less(v, Value(next), Value(0.0f), where_less(Value(next), v, Value(0.0f), Value(1.0f)));
      });
      block.map(i32(count), [&](auto i) {
        using Value = decltype(scores.load(i));
        out.from(at).store(i, Value(next));
      });
      last = next, at += i32(count);
    }
    block.sync();
  }
  // e^((score - best) / temperature).
  template <class Value, class View>
  static Value weight(Value score, float best, const Row<View>& row) {
    return where_less(Value(kNone), score,
                      weight_of((max(score, Value(-3e38f)) - best) * row.inverse_temperature), Value(0.0f));
  }
  template <class Block, class Scores, class View>
  static void describe_block(Block& block, Scores scores, i32 b, float best, const Row<View>& row,
                             View planes) {
    constexpr i32 kBlocks = ScoreSlices::kBlocks;
    const float first = scores.get(0);
    const float least = block.reduce(kBlock, Min(), [&](auto i) {
      auto v = scores.load(i);
      using Value = decltype(v);
      return where_less(Value(kNone), v, v, Value(-kNone));
    });
    const float sum = block.reduce(kBlock, Sum(), [&](auto i) { return weight(scores.load(i), best, row); });
    const float count = block.reduce(kBlock, Sum(), [&](auto i) {
      auto v = scores.load(i);
      using Value = decltype(v);
      return where_less(Value(kNone), v, Value(1.0f), Value(0.0f));
    });
    planes.set(ScoreSlices::kFirst * kBlocks + b, first);
    planes.set(ScoreSlices::kLast * kBlocks + b, count > 0 ? least : kNone);
    planes.set(ScoreSlices::kWeight * kBlocks + b, sum);
    planes.set(ScoreSlices::kCount * kBlocks + b, count);
  }

  template <class Block, class View>
  static void slice(Block& block, const SampleParts& a, i32 m, i32 s, const Row<View>& row) {
    const i32 begin = s * kSize, count = min(kSize, row.vocab - begin);
    auto scores = block.scratch(kSize);
    block.map(count, [&](auto i) { scores.store(i, row.score(i + begin)); });
    block.map(kSize - count, [&](auto i) {
      using Value = decltype(scores.load(i));
      scores.from(count).store(i, Value(kNone));
    });
    block.sync();
    const Best best = block.argmax(scores, kSize);
    const bool has_some = best.value > kNone;
    auto out = block.row(a.best, m, s);
    out.set(ScoreSlices::kScore, best.value);
    out.set(ScoreSlices::kToken, has_some ? float(begin + best.index) : 0.0f);
    out.set(ScoreSlices::kUnused, 0.0f);
    out.set(ScoreSlices::kSum, !row.draws ? 0.0f : block.reduce(kSize, Sum(), [&](auto i) {
      return weight(scores.load(i), best.value, row);
    }));
    if (row.drops) {
      auto sorted = block.scratch(kSize);
      auto planes = block.row(a.blocks, m, s, 0);
      sort(block, scores, sorted);
      auto all = block.row(a.sorted, m, s);
      block.map(kSize, [&](auto i) { all.store(i, sorted.load(i)); });
      for (i32 b = 0; b < ScoreSlices::kBlocks; ++b)
        describe_block(block, sorted.from(b * kBlock), b, best.value, row, planes);
    }
    block.sync();
  }

  template <class Block>
  static void run(Block& block, const SampleParts& a, const TileCoord& t) {
    run_with<Body>(block, a, t);
  }
  // Maker: describes a slice of a row.
  template <class Maker, class Block>
  static void run_with(Block& block, const SampleParts& a, const TileCoord& t) {
    const StepHost& host = block.host(a.step);
    auto arrays = block.row(a.state).from(i64(sizeof(StepDevice)));
    using View = decltype(arrays);
    for (i32 m = t[0]; m < t[1]; ++m) {
      const i32 last = host.wanted_rows()[m], s = host.row_sequence()[last];
      const StepSequence& options = *host.sequence(s);
      if (last != options.row_begin + options.row_count - 1) continue;  // wanted for its logits only
      const i32 vocab = a.logits.last();
      const float inverse_temperature = min(quotient(1.0f, options.temperature), kSharpest);
      block.inputs();  // not earlier: the host's part was there before
      const Row<View> row{block.row(a.logits, m),
                          ScoreEditor<View>::of(block, host, s, a.edits, a.masks, arrays),
                          vocab,
                          options.temperature > 0,
                          options.drops(vocab),
                          inverse_temperature};
      for (i32 slice = t[2]; slice < t[3]; ++slice) Maker::slice(block, a, m, slice, row);
    }
  }
};

}  // namespace sample_parts
