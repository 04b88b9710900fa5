#include "heddle/model/build/builder.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "heddle/base/invariant.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/activation/activation.h"
#include "heddle/ops/activation/clamped_gate.h"
#include "heddle/ops/activation/gated_activation.h"
#include "heddle/ops/activation/gated_product.h"
#include "heddle/ops/add/add.h"
#include "heddle/ops/attention/attention.h"
#include "heddle/ops/attention/attention_merge.h"
#include "heddle/ops/attention/attention_sink.h"
#include "heddle/ops/bias/bias.h"
#include "heddle/ops/clamp/clamp.h"
#include "heddle/ops/copy/copy.h"
#include "heddle/ops/experts/expert_bias.h"
#include "heddle/ops/experts/expert_linear.h"
#include "heddle/ops/experts/expert_sum.h"
#include "heddle/ops/experts/route.h"
#include "heddle/ops/experts/router.h"
#include "heddle/ops/gather_rows/gather_rows.h"
#include "heddle/ops/head_norm/head_norm.h"
#include "heddle/ops/kv_append/kv_append.h"
#include "heddle/ops/layer_norm/layer_norm.h"
#include "heddle/ops/linear/head_linear.h"
#include "heddle/ops/linear/linear.h"
#include "heddle/ops/multiply/multiply.h"
#include "heddle/ops/rms_norm/rms_norm.h"
#include "heddle/ops/rope/position_gain.h"
#include "heddle/ops/rope/rope_rows.h"
#include "heddle/ops/rope/rope_table.h"
#include "heddle/ops/scale/gate_rows.h"
#include "heddle/ops/scale/scale.h"

namespace heddle {
namespace {

// The largest divisor of `whole` that is at most `most`.
i32 largest_part(i32 whole, i32 most) {
  i32 part = std::clamp(most, 1, whole);
  while (whole % part != 0) --part;
  return part;
}

// Rows of all heads as one part.
Tensor joined_heads(Tensor part) {
  part.rank = 2;
  part.size[1] *= part.size[3], part.stride[1] = 1;
  part.size[2] = part.size[3] = 0, part.stride[2] = part.stride[3] = 0;
  return part;
}

// Makes the last call of the graph store its result a second time, as `second`.
Tensor made_twice(Graph& graph, const Tensor& second) {
  Node& maker = graph.nodes().back();
  Tensor* copy = argument(maker.main_part(), "copy");
  HEDDLE_CHECK(copy);
  return *copy = graph.add_tensor(maker.name + ".copy", BufferKind::kActivation, second.dtype, second);
}

// Makes a tensor f32 wherever calls of the graph leave or read it.
void widen(Graph& graph, const Tensor& narrow) {
  const u32 buffer = narrow.buffer;
  graph.buffers()[buffer].bytes *= size_of(DType::kF32) / size_of(narrow.dtype);
  for (Node& node : graph.nodes())
    for (Part& part : node.parts)
      for (const Argument& one : arguments(part))
        if (one.tensor->buffer == buffer) one.tensor->dtype = DType::kF32;
}

// The call that leaves `made` as its y.
Node& maker_of(Graph& graph, const Tensor& made) {
  const auto leaves = [&](Node& node) {
    const Tensor* y = argument(node.main_part(), "y");
    return y && y->buffer == made.buffer;
  };
  const auto found = std::ranges::find_if(graph.nodes(), leaves);
  HEDDLE_CHECK(found != graph.nodes().end());
  return *found;
}

// Makes a norm once more, with its result in f32.
Tensor again_in_f32(Graph& graph, const Node& norm) {
  Part part = norm.main_part();
  Tensor* y = argument(part, "y");
  *y = dense(DType::kF32, *y);
  return *argument(graph.append(*part.op, norm.name + ".f32", std::move(part.args)).main_part(), "y");
}

constexpr i32 kWideKeys = 256;     // elements
constexpr i32 kLatentQueries = 8;  // in a tile of latent attention, where all heads share one kv head

// A row that no sequence has would overwrite the keys of one that has some.
void append_keys(Graph& graph, std::string name, const KvAppend& args) {
  HEDDLE_CHECK(graph.live() != LiveRows::kAll);
  graph.call("kv_append", std::move(name), args);
}

}  // namespace

Builder::Builder(const GraphRequest& request, const ModelInfo& info, const Inventory& tensors)
    : request_(request), info_(info), tensors_(tensors) {
  Graph& graph = made_.graph;
  step_ = graph.add_tensor("step", BufferKind::kStepHost, DType::kU8, {i32(StepHost::bytes(request.shape))});
  state_ =
      graph.add_tensor("state", BufferKind::kStepDevice, DType::kU8, {i32(StepDevice::bytes(request.shape))});
  graph.set_live(LiveRows::kRows);
}

Tensor Builder::like(Tensor x, i32 cols) const {
  return dense(request_.travel_dtype, {x.size[0], cols});
}

Tensor Builder::vector(const std::string& name, VectorSpec spec) {
  Tensor tensor = made_.graph.add_tensor(name, BufferKind::kTable, DType::kF32, {spec.size});
  spec.name = name;
  made_.vectors[name] = std::move(spec);
  return tensor;
}

// The elements of a vector as a matrix of `rows` rows.
Tensor Builder::vectors(const std::string& name, VectorSpec spec, i32 rows) {
  Tensor made = vector(name, std::move(spec));
  made.rank = 2;
  made.size[1] = made.size[0] / rows, made.size[0] = rows;
  made.stride[0] = made.size[1], made.stride[1] = 1;
  return made;
}

// The type that holds all parts of a matrix exactly.
DType Builder::dtype_of(const Rows& rows) const {
  if (!tensors_.mixed) return info_.weight_dtype;
  const DType first = tensors_.dtype(rows.sources.front().tensor);
  const auto same = [&](const WeightSource& source) { return tensors_.dtype(source.tensor) == first; };
  return std::ranges::all_of(rows.sources, same) ? first : DType::kF32;
}

// Keeps the codes of a matrix whose parts are all stored in the same way, or says why not.
Coding Builder::take_coding(WeightSpec& spec) const {
  std::vector<Coding> codings;
  for (const WeightSource& source : spec.sources) {
    StoredCoding stored = tensors_.coding(source.tensor);
    codings.push_back(stored.coding);
    if (!stored.expanded.empty()) spec.expanded = std::move(stored.expanded);
  }
  const auto is_coded = [](const Coding& coding) { return coding.code != Code::kNone; };
  if (!spec.expanded.empty() || std::ranges::none_of(codings, is_coded)) return {};
  const bool same = std::ranges::all_of(codings, [&](const Coding& one) { return one == codings.front(); });
  const bool turned = std::ranges::any_of(spec.sources, &WeightSource::transposed);
  if (!request_.codes)
    spec.expanded = "the option weights is floats";
  else if (!same || spec.dtype != DType::kBf16)
    spec.expanded = "its parts are stored in different ways";
  else if (turned)
    spec.expanded = "it is stored transposed";
  else
    spec.coding = codings.front();
  return spec.coding;
}

Weight Builder::matrix(const std::string& name, const Rows& rows, i32 cols, i32 panel_rows, i32 matrices) {
  WeightSpec spec{
      .name = name, .dtype = dtype_of(rows), .cols = cols, .sources = rows.sources, .order = rows.order};
  Weight weight;
  weight.data = dense(spec.dtype, {spec.rows() / matrices, cols});
  weight.panel_rows = panel_rows;
  weight.matrices = matrices;
  weight.interleave = request_.interleave * 2 / size_of(spec.dtype);
  weight.coding = take_coding(spec);
  if (weight.is_coded()) weight.interleave = request_.code_bytes * 8 / bits_of(weight.coding.code);
  const bool streams = request_.code_bytes == CodePanel::kWordBytes && panel_rows == 2;
  if (!weight.holds_coding() || (weight.is_coded() && streams && !weight.is_streamed())) {
    spec.expanded = weight.holds_coding()
                        ? fmt::format("its scales are of {} columns each", weight.coding.group)
                        : fmt::format("its panels have {} rows", panel_rows);
    spec.coding = weight.coding = {};
    weight.interleave = request_.interleave;
  }
  weight.data.buffer =
      made_.graph.add_buffer({.name = name, .kind = BufferKind::kWeight, .bytes = weight.bytes()});
  made_.weights[name] = std::move(spec);
  return weight;
}

Weight Builder::table(const std::string& name, const std::string& tensor, i32 rows, i32 cols) {
  return matrix(name, {.sources = {{tensor, rows}}}, cols, request_.panel_rows);
}

Weight Builder::head_table(const Weight& embedding, const std::string& tensor, bool tied) {
  const std::string& table = made_.graph.buffers()[embedding.data.buffer].name;
  const std::string& tied_to = made_.weights.at(table).sources.front().tensor;
  if ((tied || tensors_.tied_outside) && (!tensors_.has(tensor) || tensors_.same(tensor, tied_to)))
    return embedding;
  return this->table("head.weight", tensor, embedding.rows(), embedding.cols());
}

Tensor Builder::embed(const std::string& name, const Weight& table, double scale) {
  return look_up(name, {.state = state_, .table = table, .scale = float(scale)});
}

Tensor Builder::embed_positions(const std::string& name, const Weight& table) {
  return look_up(name, {.state = state_, .table = table, .by_position = 1});
}

Tensor Builder::look_up(const std::string& name, Embedding args) {
  args.y = dense(DType::kF32, {request_.shape.rows, args.table.cols()});
  return made_.graph.call("embedding", path(name), args).y;
}

Tensor Builder::residual(Tensor x) {
  if (!request_.resident) return x;
  Graph& graph = made_.graph;
  residual_ = graph.add_tensor("residual", BufferKind::kActivation, DType::kF32, {x.size[0], x.last()});
  graph.buffers()[residual_.buffer].resident = true;
  const Tensor travelling = made_twice(graph, like(x, x.last()));
  graph.call("copy", path("residual.keep"), Copy{.x = x, .y = residual_});
  return travelling;
}

Tensor Builder::rms_norm(const std::string& name, Tensor x, const std::string& weight, const Rms& rms,
                         const std::vector<i32>& order) {
  Tensor w =
      vector(path(name) + ".weight",
             {.size = x.last(), .sources = {{weight, x.last()}}, .order = order, .plus = float(rms.plus)});
  RmsNorm args{.x = x, .weight = w, .y = like(x, x.last()), .eps = float(rms.eps)};
  return made_.graph.call("rms_norm", path(name), args).y;
}

Tensor Builder::head_norm(const std::string& name, Tensor qkv, const HeadNorms& weights, const Heads& heads,
                          const Rms& rms) {
  const i32 normed = heads.query + heads.kv, dim = heads.dim;
  VectorSpec spec{.size = normed * dim, .sources = weights.weights, .plus = float(rms.plus)};
  if (weights.weights.empty()) spec.values.assign(size_t(2 * dim), 1.0f);
  for (i32 column = 0; column < normed * dim; ++column) {
    const i32 row = weights.order.empty() ? column : weights.order[size_t(column)];
    spec.order.push_back(weights.each ? row : row % dim + (row < heads.query * dim ? 0 : dim));
  }
  HeadNorm args{.x = qkv, .weight = vector(path(name) + ".weight", spec), .y = like(qkv, qkv.last())};
  args.head_dim = dim, args.heads = normed, args.centred = weights.centred, args.eps = float(rms.eps);
  const Tensor y = made_.graph.call("head_norm", path(name), args).y;
  if (weights.biases.empty()) return y;
  // Columns after the heads get the 0 that stands before the biases.
  VectorSpec biases{.size = qkv.last(), .sources = weights.biases, .order = spec.order, .values = {0}};
  for (i32& at : biases.order) ++at;
  biases.order.resize(size_t(qkv.last()), 0);
  const Tensor b = vector(path(name) + ".bias", std::move(biases));
  const Bias add{.x = y, .bias = b, .y = like(qkv, qkv.last())};
  return made_.graph.call("bias", path(name) + ".add_bias", add).y;
}

Tensor Builder::layer_norm(const std::string& name, Tensor x, const std::string& weight,
                           const std::string& bias, const Rms& rms) {
  Tensor w = vector(path(name) + ".weight",
                    {.size = x.last(), .sources = {{weight, x.last()}}, .plus = float(rms.plus)});
  Tensor b;
  if (!bias.empty()) b = vector(path(name) + ".bias", {.size = x.last(), .sources = {{bias, x.last()}}});
  return made_.graph
      .call("layer_norm", path(name),
            LayerNorm{.x = x, .weight = w, .bias = b, .y = like(x, x.last()), .eps = float(rms.eps)})
      .y;
}

Tensor Builder::norm(const std::string& name, Tensor x, const std::string& tensor, const Norm& norm) {
  if (!norm.weights) {
    const size_t size = size_t(x.last());
    const Tensor ones =
        vector(path(name) + ".weight", {.size = x.last(), .values = std::vector<float>(size, 1)});
    const LayerNorm args{.x = x, .weight = ones, .y = like(x, x.last()), .eps = float(norm.eps)};
    return made_.graph.call("layer_norm", path(name), args).y;
  }
  if (!norm.centred) return rms_norm(name, x, tensor + ".weight", {norm.eps, norm.plus});
  return layer_norm(name, x, tensor + ".weight", norm.bias ? tensor + ".bias" : "", {norm.eps, norm.plus});
}

Tensor Builder::linear(const std::string& name, Tensor x, const Weight& weight) {
  return made_.graph.call("linear", path(name), Linear{.x = x, .w = weight, .y = like(x, weight.rows())}).y;
}

Tensor Builder::linear(const std::string& name, Tensor x, const Rows& rows) {
  const Weight weight = matrix(path(name) + ".weight", rows, x.last(), request_.panel_rows);
  Tensor y = linear(name, x, weight);
  if (rows.biases.empty()) return y;
  VectorSpec spec{.size = weight.rows(), .order = rows.order};
  for (size_t i = 0; i < rows.biases.size(); ++i)
    spec.sources.push_back({rows.biases[i], rows.sources[i].rows});
  Tensor b = vector(path(name) + ".bias", std::move(spec));
  return made_.graph
      .call("bias", path(name) + ".add_bias", Bias{.x = y, .bias = b, .y = like(x, weight.rows())})
      .y;
}

Tensor Builder::head_linear(const std::string& name, Tensor x, const Rows& rows, i32 heads) {
  HeadLinear args{.x = x, .heads = heads};
  const i32 of_head = rows.sources.front().rows;
  args.w = matrix(path(name) + ".weight", rows, x.last() / heads, largest_part(of_head, request_.panel_rows));
  args.y = like(x, args.w.rows());
  return made_.graph.call("head_linear", path(name), args).y;
}

// Logits that choose experts have more bits than what travels between workers, because another expert is another text. A linear
// of one row keeps all bits on a GPU (device/block.cuh). With more rows it narrows them to the weight's dtype, and so does a CPU
// whose products are of bf16 (cpu/simd_block.h), so there is an op of its own.
Tensor Builder::route_logits(const std::string& name, Tensor x, const Weight& weight, bool own_input) {
  Graph& graph = made_.graph;
  const bool many = x.size[0] > 1 || request_.travel_dtype == DType::kF32;  // f32 travels on a CPU
  if (x.dtype != DType::kF32) {
    Node& norm = maker_of(graph, x);
    const Tensor* normed = argument(norm.main_part(), "x");
    HEDDLE_CHECK(normed);
    if (normed->dtype != DType::kF32) widen(graph, *normed);
    if (own_input)
      widen(graph, x), x.dtype = DType::kF32;
    else
      x = again_in_f32(graph, norm);
  }
  if (many && weight.data.dtype != DType::kF32)
    return graph.call("router", path(name), Router{.x = x, .w = weight}).y;
  const Linear scores{.x = x, .w = weight, .y = dense(DType::kF32, {x.size[0], weight.rows()})};
  return graph.call("linear", path(name), scores).y;
}

Routes Builder::route(const std::string& name, Tensor x, const Rows& rows, const Routing& routing) {
  const Weight weight = matrix(path(name) + ".weight", rows, x.last(), request_.panel_rows);
  Tensor logits =
      scale(name + ".scaled", route_logits(name, x, weight, routing.own_input), routing.logit_scale);
  if (!rows.biases.empty()) {
    const VectorSpec bias{.size = routing.count, .sources = {{rows.biases.front(), routing.count}}};
    const Tensor b = vector(path(name) + ".logit_bias", bias);
    logits = made_.graph.call("bias", path(name) + ".add_bias", Bias{.x = logits, .bias = b}).y;
  }
  Route args{.logits = logits};
  if (!routing.bias.empty())
    args.bias =
        vector(path(name) + ".bias", {.size = routing.count, .sources = {{routing.bias, routing.count}}});
  if (!routing.factors.empty())
    args.factors = vector(path(name) + ".factors",
                          {.size = routing.count, .sources = {{routing.factors, routing.count}}});
  args.sparse_mixer = routing.sparse_mixer, args.threshold = float(routing.threshold);
  args.choice = dense(DType::kI32, {x.size[0], routing.taken});
  args.share = dense(DType::kF32, {x.size[0], routing.taken});
  args.sigmoid = routing.sigmoid, args.normalise = routing.normalise;
  args.groups = routing.groups, args.groups_kept = routing.groups_kept;
  args.scores_of_group = routing.scores_of_group, args.scale = float(routing.scale);
  args = made_.graph.call("route", path(name) + ".route", args);
  return {routing.count, args.choice, args.share};
}

Tensor Builder::expert_linear(const std::string& name, Tensor x, const Routes& routes, const Rows& rows) {
  ExpertLinear args{.step = step_, .choice = routes.choice, .x = x};
  args.w = matrix(path(name) + ".weight", rows, x.last(), request_.panel_rows, routes.experts);
  args.y = dense(request_.travel_dtype, {args.entries(), args.w.rows()});
  made_.graph.set_live(LiveRows::kAll);  // its tiles are slots of experts
  return made_.graph.call("expert_linear", path(name), args).y;
}

Tensor Builder::expert_bias(const std::string& name, Tensor x, const Routes& routes,
                            const std::string& bias) {
  const i32 size = routes.experts * x.last();
  ExpertBias args{.step = step_, .choice = routes.choice, .x = x};
  args.bias = vector(path(name) + ".weight", {.size = size, .sources = {{bias, size}}});
  args.y = dense(request_.travel_dtype, {x.size[0], x.last()});
  made_.graph.set_live(LiveRows::kRows);
  const Tensor y = made_.graph.call("expert_bias", path(name), args).y;
  made_.graph.set_live(LiveRows::kAll);  // what follows has a row for each pair
  return y;
}

void Builder::end_experts() {
  made_.graph.set_live(LiveRows::kRows);
}

Tensor Builder::expert_sum(const std::string& name, Tensor x, const Routes& routes) {
  end_experts();
  ExpertSum args{.x = x, .share = routes.share};
  args.y = dense(request_.travel_dtype, {routes.share.size[0], x.last()});
  return made_.graph.call("expert_sum", path(name), args).y;
}

Tensor Builder::score_bias(const std::string& name, std::vector<float> values, i32 heads) {
  return vectors(name, {.size = i32(values.size()), .values = std::move(values)}, heads);
}

Tensor Builder::rotary(const std::string& name, const Rotary& rotary, const RotaryGains& gains) {
  const i32 pairs = i32(rotary.inv_freq.size());
  RopeTable args{.state = state_, .scale = float(rotary.scale)};
  args.inv_freq = vector(name + ".inv_freq", {.size = pairs, .values = rotary.inv_freq});
  args.table = dense(DType::kF32, {request_.shape.rows, 2 * pairs});
  const Tensor table = made_.graph.call("rope_table", name + ".table", args).table;
  return grow(name + ".gain", table, gains);
}

Tensor Builder::gain(const std::string& name, Tensor x, const RotaryGains& gains) {
  return grow(path(name), x, gains);
}

Tensor Builder::grow(const std::string& path, Tensor x, const RotaryGains& gains) {
  if (gains.values.empty()) return x;
  PositionGain args{.state = state_, .x = x, .period = gains.period};
  args.gains = vector(path + "s", {.size = i32(gains.values.size()), .values = gains.values});
  return made_.graph.call("position_gain", path, args).y;
}

Tensor Builder::rope(const std::string& name, Tensor x, Tensor table, const Heads& heads, i32 rotary_dim) {
  return made_.graph
      .call("rope_rows", path(name),
            RopeRows{.x = x,
                     .table = table,
                     .y = like(x, x.last()),
                     .head_dim = heads.dim,
                     .rotary_dim = rotary_dim,
                     .heads = heads.query + heads.kv,
                     .interleaved = 1})
      .y;
}

KvPages Builder::pages(i32 layer, i32 kv_heads, i32 key_dim, i32 value_dim) {
  const auto pages_of = [&](const char* what, i32 dim) {
    return made_.graph.add_tensor("kv." + std::to_string(layer) + what, BufferKind::kPages, request_.kv_dtype,
                                  {request_.num_pages, kv_heads, request_.shape.page_size, dim});
  };
  return {pages_of(".keys", key_dim), pages_of(".values", value_dim)};
}

void Builder::append(const std::string& name, Tensor x, Tensor pages, i32 column) {
  append_keys(made_.graph, path(name),
              {.step = step_, .state = state_, .x = x, .keys = pages, .key_column = column});
}

Tensor Builder::attend(const std::string& name, Tensor qkv, i32 layer, const Heads& heads,
                       const Scores& scores) {
  const KvPages kv = pages(layer, heads.kv, heads.dim, heads.dim);
  append_keys(made_.graph, path(name) + ".append",
              {.step = step_,
               .state = state_,
               .x = qkv,
               .keys = kv.keys,
               .values = kv.values,
               .key_column = heads.key_column(),
               .value_column = heads.value_column()});
  const AttentionRows rows{.q = columns_of(qkv, 0, heads.key_column()),
                           .k = columns_of(qkv, heads.key_column(), heads.kv * heads.dim),
                           .v = columns_of(qkv, heads.value_column(), heads.kv * heads.dim),
                           .latent = {}};
  return attend(name, rows, kv, scores);
}

Tensor Builder::attend(const std::string& name, const AttentionRows& rows, const KvPages& pages,
                       const Scores& scores) {
  Graph& graph = made_.graph;
  AttentionCut cut = request_.cut;
  Attention args{
      .step = step_, .state = state_, .q = rows.q, .latent = rows.latent, .k = rows.k, .v = rows.v};
  args.keys = pages.keys, args.values = pages.values, args.bias = scores.bias;
  args.kv_heads = pages.keys.size[1], args.heads = rows.q.last() / args.head_dim();
  if (request_.attention_queries > 0 && !args.is_latent()) {
    const StepShape& shape = request_.shape;
    cut.block_rows = std::max(1, request_.attention_queries / args.group());
    cut.max_blocks = std::min(shape.rows, shape.rows / cut.block_rows + shape.sequences);
  }
  args.block_heads =
      args.is_latent() ? largest_part(args.heads, kLatentQueries / cut.block_rows) : args.group();
  if (request_.fixed_splits && !scores.sinks.empty()) cut.max_splits = 1;  // sinks come before the join
  args.max_splits = cut.max_splits, args.split_unit = cut.split_unit;
  args.joins = request_.fixed_splits && cut.max_splits > 1 && request_.shape.rows > 1 ? 1 : 0;
  const i32 tiles = args.split_tiles();
  args.part = dense(request_.travel_dtype, {rows.q.size[0], args.heads, tiles, args.value_dim()});
  args.scale = float(scores.scale), args.softcap = float(scores.softcap), args.window = scores.window;
  args.block_rows = cut.block_rows, args.max_blocks = cut.max_blocks;
  if (args.score_dim() > kWideKeys) args.chunk = request_.wide_chunk;
  graph.set_live(LiveRows::kAll);  // its tiles are cut by the attention plan, not by rows
  args = graph.call("attention", path(name), args);
  graph.set_live(LiveRows::kRows);
  if (!scores.sinks.empty()) {
    AttentionSink sink{.part = args.part, .stats = args.stats};
    sink.part.size[2] = sink.stats.size[2] = 1;  // the first split
    sink.y = sink.part, sink.new_stats = sink.stats;
    sink.sinks = vector(path(name) + ".sinks", {.size = args.heads, .sources = {{scores.sinks, args.heads}}});
    graph.call("attention_sink", path(name) + ".sink", sink);
  }
  if (args.split_tiles() == 1) return joined_heads(args.part);
  AttentionMerge merge{.step = step_, .state = state_, .part = args.part, .stats = args.stats};
  merge.y = like(rows.q, args.heads * args.value_dim());
  merge.block_rows = cut.block_rows, merge.max_blocks = cut.max_blocks;
  merge.max_splits = cut.max_splits, merge.split_unit = cut.split_unit, merge.window = scores.window;
  return graph.call("attention_merge", path(name) + ".merge", merge).y;
}

Tensor Builder::activate(const std::string& name, Tensor x, i32 kind) {
  return made_.graph.call("activation", path(name), Activation{.x = x, .y = like(x, x.last()), .kind = kind})
      .y;
}

Tensor Builder::gate(const std::string& name, Tensor pairs, i32 kind) {
  GatedActivation args{.x = pairs, .y = like(pairs, pairs.last() / 2), .kind = kind};
  return made_.graph.call("gated_activation", path(name), args).y;
}

Tensor Builder::clamp(const std::string& name, Tensor x, double limit) {
  const Clamp args{
      .x = x, .y = dense(x.dtype, {x.size[0], x.last()}), .low = -float(limit), .high = float(limit)};
  return made_.graph.call("clamp", path(name), args).y;
}

Tensor Builder::clamped_gate(const std::string& name, Tensor pairs, double alpha, double limit) {
  ClampedGate args{.x = pairs, .y = like(pairs, pairs.last() / 2)};
  args.alpha = float(alpha), args.limit = float(limit);
  return made_.graph.call("clamped_gate", path(name), args).y;
}

Tensor Builder::sum(const std::string& name, Tensor a, Tensor b) {
  Tensor y = like(a, a.last());
  return made_.graph.call("add", path(name), Add{.a = a, .b = b, .y = y}).y;
}

Tensor Builder::scale(const std::string& name, Tensor x, double factor) {
  Scale args{.x = x, .y = dense(x.dtype, {x.size[0], x.last()}), .factor = float(factor)};
  return factor == 1 ? x : made_.graph.call("scale", path(name), args).y;
}

Tensor Builder::scale(const std::string& name, Tensor x, const std::string& tensor) {
  PositionGain args{.state = state_, .x = x, .period = std::numeric_limits<i32>::max()};
  args.gains = vector(path(name) + ".factor", {.size = 1, .sources = {{tensor, 1}}});
  return made_.graph.call("position_gain", path(name), args).y;
}

Tensor Builder::travelling(const std::string& name, Tensor x) {
  if (x.dtype == request_.travel_dtype) return x;
  return made_.graph.call("copy", path(name), Copy{.x = x, .y = like(x, x.last())}).y;
}

Tensor Builder::multiply(const std::string& name, Tensor a, Tensor b) {
  return made_.graph.call("multiply", path(name), Multiply{.a = a, .b = b, .y = like(a, a.last())}).y;
}

Tensor Builder::gated_product(const std::string& name, Tensor gate, Tensor x, i32 kind) {
  const GatedProduct args{.gate = gate, .up = x, .y = like(x, x.last()), .kind = kind};
  return made_.graph.call("gated_product", path(name), args).y;
}

Tensor Builder::gate_rows(const std::string& name, Tensor x, Tensor gate) {
  return made_.graph.call("gate_rows", path(name), GateRows{.x = x, .gate = gate, .y = like(x, x.last())}).y;
}

Tensor Builder::add(const std::string& name, Tensor a, Tensor b) {
  if (!residual_.exists()) {
    Tensor y = dense(DType::kF32, {a.size[0], a.last()});
    return made_.graph.call("add", path(name), Add{.a = a, .b = b, .y = y}).y;
  }
  Add args{.a = a, .b = residual_, .y = residual_, .copy = like(a, a.last())};
  return made_.graph.call("add", path(name), args).copy;
}

Tensor Builder::wanted(Tensor x) {
  made_.graph.set_live(LiveRows::kWanted);
  if (request_.shape.rows == 1) return x;  // either this row is wanted, or none is
  Tensor y = dense(DType::kF32, {request_.shape.wanted, x.last()});
  return made_.graph.call("gather_rows", "wanted", GatherRows{.step = step_, .x = x, .y = y}).y;
}

std::vector<i32> pair_rotary_rows(i32 rows, i32 rotated, i32 head_dim, i32 rotary_dim) {
  std::vector<i32> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  for (i32 head = 0; head < rotated; ++head)
    for (i32 i = 0; i < rotary_dim / 2; ++i) {
      order[size_t(head * head_dim + 2 * i)] = head * head_dim + i;
      order[size_t(head * head_dim + 2 * i + 1)] = head * head_dim + i + rotary_dim / 2;
    }
  return order;
}

std::vector<i32> interleave_halves(i32 n) {
  std::vector<i32> order;
  for (i32 i = 0; i < n; ++i) order.push_back(i), order.push_back(n + i);
  return order;
}

}  // namespace heddle
