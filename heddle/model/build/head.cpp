// A model's output: the scores of all tokens, and the choice among them.
#include "heddle/engine/score_buffers.h"
#include "heddle/ir/rules.h"
#include "heddle/model/build/builder.h"
#include "heddle/ops/bias/bias.h"
#include "heddle/ops/linear/linear.h"
#include "heddle/ops/sample/sample.h"
#include "heddle/ops/sample/sample_parts.h"
#include "heddle/ops/softcap/softcap.h"

namespace heddle {

void Builder::head(Tensor x, const Weight& weight, const Logits& how) {
  Linear args{.x = x, .w = weight, .y = dense(DType::kF32, {x.size[0], weight.rows()})};
  Tensor logits = made_.graph.call("linear", "head", args).y;
  if (!how.bias.empty()) {
    const Tensor b = vector("head.bias", {.size = weight.rows(), .sources = {{how.bias, weight.rows()}}});
    logits = made_.graph.call("bias", "head.add_bias", Bias{.x = logits, .bias = b}).y;
  }
  logits = scale("head.scale", logits, how.scale);
  if (how.softcap > 0)
    logits = made_.graph.call("softcap", "head.softcap", Softcap{.x = logits, .cap = float(how.softcap)}).y;
  made_.graph.buffers()[logits.buffer].kind = BufferKind::kOutput;
  if (!request_.sample) return;
  const Tensor edits = made_.graph.add_tensor(kScoreEdits, BufferKind::kPages, DType::kF32,
                                              {request_.slots, ScoreEdits::kPlanes, logits.last()});
  const Tensor masks = made_.graph.add_tensor(kScoreMasks, BufferKind::kPages, DType::kU8,
                                              {request_.slots, ScoreEdits::mask_bytes(logits.last())});
  Sample sample{.step = step_, .logits = logits, .state = state_, .edits = edits, .masks = masks};
  if (request_.sample_parts) {
    SampleParts parts{.step = step_, .logits = logits, .state = state_, .edits = edits, .masks = masks};
    parts = made_.graph.call("sample_parts", "sample.parts", parts);
    sample.best = parts.best, sample.sorted = parts.sorted, sample.blocks = parts.blocks;
  }
  made_.graph.call("sample", "sample", sample);
}

}  // namespace heddle
