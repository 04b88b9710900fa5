// A sequence's scores: its logits after the bias, the repetition penalty and the penalties of the answer's tokens, in the order of
// vLLM. Included inside the namespace of each body of the family.

template <class View>
struct ScoreEditor {
  View seen, bias, counts;  // the tokens that it has seen, and ScoreEdits of its slot
  bool penalised, edited;
  float penalty, presence, frequency;
  float draw;  // tokens that were chosen before

  template <class Block, class Arrays>
  static ScoreEditor of(Block& block, const StepHost& host, i32 s, const Tensor& edits, Arrays arrays) {
    const StepSequence& options = *host.sequence(s);
    const StepArrays at(host.shape);
    return {arrays.from(4 * at.seen_of(s)),
            block.row(edits, options.slot, ScoreEdits::kBias),
            block.row(edits, options.slot, ScoreEdits::kCount),
            at.words > 0 && options.repetition_penalty != 1,
            options.edited != 0,
            options.repetition_penalty,
            options.presence_penalty,
            options.frequency_penalty,
            options.edited != 0 ? float(u32(arrays.get_int(i32(at.draws) + s))) : 0.0f};
  }

  // The scores of an Index.
  template <class Index, class Value>
  Value score(Index i, Value logit) const {
    if (edited) logit = logit + bias.load(i);
    if (penalised) logit = where_less(Value(0.5f), seen.load_bit(i), repeated_score(logit, penalty), logit);
    return edited ? counted(logit, counts.load(i)) : logit;
  }
  // The score of a thread's token, on a GPU.
  float score_of(i32 token, float logit) const {
    if (edited) logit += bias.get(token);
    if (penalised && (u32(seen.get_int(token / 32)) >> token % 32 & 1) != 0)
      logit = repeated_score(logit, penalty);
    return edited ? counted(logit, counts.get(token)) : logit;
  }
  bool changes() const { return penalised || edited; }

 private:
  template <class Value>
  Value counted(Value score, Value count) const {
    const Value none(0.0f);
    const Value lower =
        fma(max(count, none), Value(-frequency), score) - where_less(none, count, Value(presence), none);
    return where_less(Value(draw), none - count, Value(__builtin_bit_cast(float, 0xff800000)), lower);
  }
};
