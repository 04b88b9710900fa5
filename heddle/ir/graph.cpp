#include "heddle/ir/graph.h"

#include <algorithm>

#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"

namespace heddle {

const char* name(BufferKind kind) {
  switch (kind) {
    case BufferKind::kActivation:
      return "activation";
    case BufferKind::kWeight:
      return "weight";
    case BufferKind::kTable:
      return "table";
    case BufferKind::kStepHost:
      return "step";
    case BufferKind::kStepDevice:
      return "state";
    case BufferKind::kPages:
      return "pages";
    case BufferKind::kOutput:
      return "output";
    case BufferKind::kBorrowed:
      return "borrowed";
  }
  return "?";
}

u32 Graph::add_buffer(Buffer buffer) {
  for (const Buffer& other : buffers_)
    require(other.name != buffer.name, "[graph] buffer {} exists already; names must differ", buffer.name);
  require(buffer.bytes > 0, "[graph] buffer {} has {} bytes; must be positive", buffer.name, buffer.bytes);
  buffers_.push_back(std::move(buffer));
  return u32(buffers_.size() - 1);
}

Tensor Graph::add_tensor(std::string name, BufferKind kind, DType dtype, Sizes shape) {
  Tensor tensor = dense(dtype, shape);
  i64 bytes = size_of(dtype);
  for (int d = 0; d < tensor.rank; ++d) bytes *= tensor.size[d];
  tensor.buffer = add_buffer({.name = std::move(name), .kind = kind, .bytes = bytes});
  return tensor;
}

namespace {

// Checks that a tensor points into a buffer of the graph.
void check_place(const Graph& graph, const std::string& node, const Field& field, const Tensor& value) {
  if (!value.exists()) return;
  require(value.data == nullptr, "[{}] {} holds an address; tensors of a graph lie in its buffers", node,
          field.name);
  require(value.buffer < graph.buffers().size(), "[{}] {} names buffer {}; the graph has {}", node,
          field.name, value.buffer, graph.buffers().size());
  const Buffer& buffer = graph.buffers()[value.buffer];
  const i64 end = whole(value, Access::kRead).end();
  require(value.offset >= 0 && end <= buffer.bytes, "[{}] {} ends at byte {} of {}, which has {}", node,
          field.name, end, buffer.name, buffer.bytes);
}

}  // namespace

Node& Graph::append(const OpSpec& op, std::string name, std::vector<std::byte> args) {
  require(args.size() == op.args_size(), "[{}] arguments of {} bytes; {} takes {}", name, args.size(),
          op.name, op.args_size());
  try {
    op.infer(args.data());
    require_dtypes(op.name, op.fields, args.data());
  } catch (const Error& error) {
    throw Error(error.code(), std::string(error.what()) + " (node " + name + ")");
  }
  for (const Field& field : op.fields) {
    if (!field.is_tensor()) continue;
    Tensor& value = field.tensor(args.data());
    if (field.writes() && !value.exists() && value.rank > 0)  // an output without a buffer gets one
      value.buffer = add_tensor(name + "." + field.name, BufferKind::kActivation, value.dtype, value).buffer;
    check_place(*this, name, field, value);
  }
  nodes_.push_back({.name = std::move(name), .parts = {{&op, std::move(args)}}, .main = 0, .live = live_});
  return nodes_.back();
}

Node& Graph::append(std::string_view op, std::string name, std::vector<std::byte> args) {
  return append(get_op(op), std::move(name), std::move(args));
}

std::vector<TileAxis> axes_of(const Node& node, TilingTarget target) {
  if (!node.config.values().empty()) target.config = &node.config;
  return node.main_part().op->axes(node.main_part().args.data(), target);
}

std::vector<Argument> arguments(Part& part) {
  std::vector<Argument> found;
  for (const Field& field : part.op->fields)
    if (field.is_tensor()) found.push_back({field.name, &field.tensor(part.args.data()), field.access});
  return found;
}

Tensor* argument(Part& part, std::string_view name) {
  for (const Argument& found : arguments(part))
    if (found.name == name) return found.tensor;
  return nullptr;
}

TileCoord part_tile(const Node& node, size_t index, const TileCoord& tile) {
  TileCoord result = tile;
  if (index < node.main) {  // a prologue makes whole rows
    const std::vector<TileAxis> axes = node.parts[index].op->axes(node.parts[index].args.data(), {});
    int at = 2;
    for (size_t i = 1; i < axes.size(); ++i) {
      result[at++] = 0;
      if (axes[i].kind == TileAxis::Kind::kRange) result[at++] = axes[i].extent;
    }
  }
  for (size_t i = node.main + 1; i < index; ++i) {
    result[2] /= node.parts[i].op->traits.columns_per_output;
    result[3] /= node.parts[i].op->traits.columns_per_output;
  }
  if (index > node.main && node.main_part().op->traits.scatters) {  // only the run knows the rows
    result[0] = 0;
    result[1] = node.parts[index].op->axes(node.parts[index].args.data(), {})[0].extent;
  }
  if (index > node.main) {  // an epilogue's tile is stated in its output columns
    result[2] /= node.parts[index].op->traits.columns_per_output;
    result[3] /= node.parts[index].op->traits.columns_per_output;
  }
  return result;
}

NodeRule::NodeRule(const Node& node) : node_(&node) {
  for (const Part& part : node.parts) parts_.emplace_back(*part.op, part.args.data());
}

void NodeRule::append(const TileCoord& tile, std::vector<Region>& out) const {
  for (size_t i = 0; i < parts_.size(); ++i) {
    const TileCoord own = part_tile(*node_, i, tile);
    parts_[i].append(own, i == node_->main ? part_tile(*node_, parts_.size() - 1, tile) : own, out);
  }
}

std::vector<Region> node_regions(const Node& node, const TileCoord& tile) {
  std::vector<Region> regions;
  NodeRule(node).append(tile, regions);
  return regions;
}

u32 stream_items(const Node& node, const TileCoord& tile) {
  const Part& main = node.main_part();
  if (main.op->traits.streams_by_data) return kItemsFromData;
  if (!main.op->traits.main) return 0;
  u32 items = 0;
  for (const Field& field : main.op->fields) {
    if (!field.is_weight()) continue;
    const Weight& weight = field.weight(main.args.data());
    const i32 first = tile[2] / weight.panel_rows,
              last = (tile[3] + weight.panel_rows - 1) / weight.panel_rows;
    items += u32(last - first) * u32(weight.slices());
  }
  return items;
}

std::string chain_name(const Node& node) {
  std::string text;
  for (const Part& part : node.parts) text += (text.empty() ? "" : "+") + part.op->name;
  return text;
}

}  // namespace heddle
