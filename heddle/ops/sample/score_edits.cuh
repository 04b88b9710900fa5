// A sequence's scores: its logits after the bias, the repetition penalty and the penalties of the answer's tokens, in the order of
// vLLM; minus infinity where its mask has no bit. Included inside the namespace of each body of the family.

template <class View>
struct ScoreEditor {
  View seen, bias, counts, mask;  // the tokens that it has seen, and ScoreEdits and the mask of its slot
  bool penalised, edited, masked;
  float penalty, presence, frequency;
  float draw;  // tokens that were chosen before

  template <class Block, class Arrays>
  static ScoreEditor of(Block& block, const StepHost& host, i32 s, const Tensor& edits, const Tensor& masks,
                        Arrays arrays) {
    const StepSequence& options = *host.sequence(s);
    const StepArrays at(host.shape);
    return {
        arrays.from(4 * at.seen_of(s)),
        block.row(edits, options.slot, ScoreEdits::kBias),
        block.row(edits, options.slot, ScoreEdits::kCount),
        block.row(masks, options.slot),
        at.words > 0 && options.repetition_penalty != 1,
        (options.edited & ScoreEdits::kByPlanes) != 0,
        (options.edited & ScoreEdits::kByMask) != 0,
        options.repetition_penalty,
        options.presence_penalty,
        options.frequency_penalty,
        (options.edited & ScoreEdits::kByPlanes) != 0 ? float(u32(arrays.get_int(i32(at.draws) + s))) : 0.0f};
  }

  // The scores of an Index.
  template <class Index, class Value>
  Value score(Index i, Value logit) const {
    if (edited) logit = logit + bias.load(i);
    if (penalised) logit = where_less(Value(0.5f), seen.load_bit(i), repeated_score(logit, penalty), logit);
    if (edited) logit = counted(logit, counts.load(i));
    return masked ? where_less(Value(0.5f), mask.load_bit(i), logit, Value(kNever)) : logit;
  }
  // The score of a thread's token, on a GPU.
  float score_of(i32 token, float logit) const {
    if (edited) logit += bias.get(token);
    if (penalised && (u32(seen.get_int(token / 32)) >> token % 32 & 1) != 0)
      logit = repeated_score(logit, penalty);
    if (edited) logit = counted(logit, counts.get(token));
    return masked && (u32(mask.get_int(token / 32)) >> token % 32 & 1) == 0 ? kNever : logit;
  }
  bool changes() const { return penalised || edited || masked; }

 private:
  static constexpr float kNever = __builtin_bit_cast(float, 0xff800000);

  template <class Value>
  Value counted(Value score, Value count) const {
    const Value none(0.0f);
    const Value lower =
        fma(max(count, none), Value(-frequency), score) - where_less(none, count, Value(presence), none);
    return where_less(Value(draw), none - count, Value(kNever), lower);
  }
};
