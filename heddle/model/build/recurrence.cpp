// The parts of Builder that keep something of each sequence besides its pages.
#include "heddle/ir/rules.h"
#include "heddle/model/build/builder.h"
#include "heddle/ops/recurrence/delta_rule.h"
#include "heddle/ops/recurrence/mamba2_scan.h"
#include "heddle/ops/recurrence/short_convolution.h"

namespace heddle {

// Memory of an op of this layer. It lives as long as the pages of sequences, and a step reads of it what earlier ones wrote.
Tensor Builder::memory(const std::string& name, const std::vector<i32>& sizes) {
  return made_.graph.add_tensor(path(name) + ".memory", BufferKind::kPages, DType::kF32, sizes);
}

Tensor Builder::convolve(const std::string& name, Tensor x, const Convolution& convolution) {
  const i32 columns = x.last(), width = convolution.width;
  VectorSpec weight{.size = width * columns, .sources = {{convolution.tensor, width * columns}}};
  for (i32 w = 0; w < width; ++w)
    for (i32 column = 0; column < columns; ++column) weight.order.push_back(column * width + w);
  for (i32 w = 0; w < width; ++w)
    weight.factors.insert(weight.factors.end(), convolution.factors.begin(), convolution.factors.end());
  ShortConvolution args{.step = step_, .state = state_, .x = x};
  args.weight = vectors(path(name) + ".weight", std::move(weight), width);
  if (!convolution.bias.empty())
    args.bias = vector(path(name) + ".bias", {.size = columns, .sources = {{convolution.bias, columns}}});
  args.memory = memory(name, {request_.slots, width, columns});
  args.y = like(x, columns);
  args.sequences = request_.shape.sequences, args.activation = convolution.silu ? 1 : 0;
  made_.graph.set_live(LiveRows::kAll);  // its tiles are columns of sequences
  const Tensor y = made_.graph.call("short_convolution", path(name), args).y;
  made_.graph.set_live(LiveRows::kRows);
  return y;
}

Tensor Builder::delta_rule(const std::string& name, Tensor x, Tensor gates, const std::string& at,
                           const DeltaHeads& heads) {
  DeltaRule args{.step = step_, .state = state_, .x = x, .gates = gates};
  args.rate = vector(path(name) + ".rate", {.size = heads.values, .sources = {{at + "A_log", heads.values}}});
  args.bias =
      vector(path(name) + ".bias", {.size = heads.values, .sources = {{at + "dt_bias", heads.values}}});
  args.memory = memory(name, {2 * request_.slots, heads.values, heads.value_dim, heads.key_dim});
  args.y = like(x, heads.value_columns());
  args.key_heads = heads.keys, args.sequences = request_.shape.sequences;
  made_.graph.set_live(LiveRows::kAll);  // its tiles are heads of sequences
  const Tensor y = made_.graph.call("delta_rule", path(name), args).y;
  made_.graph.set_live(LiveRows::kRows);
  return y;
}

Tensor Builder::mamba2_scan(const std::string& name, Tensor x, Tensor dt, const std::string& at,
                            const StateHeads& heads) {
  Mamba2Scan args{.step = step_, .state = state_, .x = x, .dt = dt};
  const auto of_heads = [&](const char* what, const char* tensor) {
    return vector(path(name) + what, {.size = heads.heads, .sources = {{at + tensor, heads.heads}}});
  };
  args.rate = of_heads(".rate", "A_log"), args.bias = of_heads(".bias", "dt_bias");
  args.skip = of_heads(".skip", "D");
  args.memory = memory(name, {2 * request_.slots, heads.heads, heads.dim, heads.state_dim});
  args.y = like(x, heads.heads * heads.dim);
  args.groups = heads.groups, args.sequences = request_.shape.sequences;
  args.least = float(heads.least), args.most = float(heads.most);
  made_.graph.set_live(LiveRows::kAll);  // its tiles are heads of sequences
  const Tensor y = made_.graph.call("mamba2_scan", path(name), args).y;
  made_.graph.set_live(LiveRows::kRows);
  return y;
}

}  // namespace heddle
