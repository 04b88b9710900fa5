#include "heddle/ir/op.h"

#include <cctype>
#include <cstring>

#include "heddle/base/invariant.h"
#include "heddle/ir/rules.h"

namespace heddle {

const OpSpec* find_op(std::string_view name) {
  for (const OpSpec* op : all_ops())
    if (name == op->name) return op;
  return nullptr;
}

const OpSpec& get_op(std::string_view name) {
  const OpSpec* op = find_op(name);
  if (!op) {
    std::string known;
    for (const OpSpec* candidate : all_ops())
      known += std::string(known.empty() ? "" : ", ") + candidate->name;
    fail(ErrorCode::kInvalidArgument, "[{}] is not an op; known are {}", name, known);
  }
  return *op;
}

Region region_of(const Tensor& tensor, Access access, std::span<const std::array<i32, 2>> box) {
  Region region;
  region.buffer = tensor.buffer;
  region.access = access;
  region.offset = tensor.offset;
  region.run = size_of(tensor.dtype);
  // From the last dimension outwards: a dimension whose rows lie side by side widens the run, the others
  // become counts.
  int level = 1;
  for (int d = tensor.rank - 1; d >= 0; --d) {
    const i64 stride = tensor.stride[d] * size_of(tensor.dtype), n = box[size_t(d)][1] - box[size_t(d)][0];
    region.offset += box[size_t(d)][0] * stride;
    if (n == 1) continue;
    if (stride == region.run && level == 1) {
      region.run *= n;
    } else if (level < 1 && stride == region.stride[size_t(level + 1)] * region.count[size_t(level + 1)]) {
      region.count[size_t(level + 1)] *= n;
    } else {
      HEDDLE_CHECK(level >= 0);  // a part of a tensor of rank 4 that is strided in three dimensions
      region.count[size_t(level)] = n;
      region.stride[size_t(level)] = stride;
      --level;
    }
  }
  return region;
}

Region whole(const Tensor& tensor, Access access, bool indexed) {
  std::array<std::array<i32, 2>, kMaxRank> box;
  for (int d = 0; d < tensor.rank; ++d) box[size_t(d)] = {0, tensor.size[d]};
  Region region = region_of(tensor, access, std::span(box).first(tensor.rank));
  region.indexed = indexed;
  return region;
}

std::vector<TileCoord> default_tiles(std::span<const TileAxis> axes) {
  std::vector<TileCoord> tiles = {TileCoord{}};
  int at = 0;
  for (const TileAxis& axis : axes) {
    std::vector<TileCoord> next;
    const bool range = axis.kind == TileAxis::Kind::kRange;
    const i32 step = !range               ? 1
                     : axis.preferred > 0 ? (axis.preferred + axis.unit - 1) / axis.unit * axis.unit
                                          : axis.extent;
    for (TileCoord tile : tiles)
      for (i32 begin = 0; begin < axis.extent; begin += step) {
        tile[at] = begin;
        if (range) tile[at + 1] = std::min(begin + step, axis.extent);
        next.push_back(tile);
      }
    at += range ? 2 : 1;
    tiles = std::move(next);
  }
  return tiles;
}

namespace {

struct Dim {
  std::string name;
  i32 scale = 1;
};

// "M, 2N" -> {M, 1}, {N, 2}
std::vector<Dim> parse_dims(const char* text) {
  std::vector<Dim> dims;
  while (*text) {
    while (*text == ',' || *text == ' ') ++text;
    Dim dim;
    if (std::isdigit(static_cast<unsigned char>(*text))) {
      dim.scale = 0;
      while (std::isdigit(static_cast<unsigned char>(*text))) dim.scale = dim.scale * 10 + (*text++ - '0');
    }
    while (*text && *text != ',') dim.name += *text++;
    if (!dim.name.empty()) dims.push_back(dim);
  }
  return dims;
}

}  // namespace

RegionRule::RegionRule(const OpSpec& op, const std::byte* args) : op_(&op), args_(args) {
  struct Walk : ArgVisitor {
    std::vector<Operand>* operands;
    std::vector<TileAxis> axes;
    std::string_view output;

    int coordinate_of(const std::string& dim) const {
      int at = 0;
      for (const TileAxis& axis : axes) {
        if (dim == axis.dim) return at;
        at += axis.kind == TileAxis::Kind::kRange ? 2 : 1;
      }
      return -1;
    }
    void tensor(const char* argument, Tensor& value, const char* text, Access access) override {
      if (!value.exists()) return;
      Operand operand{value, access, {-1, -1, -1, -1}, {1, 1, 1, 1}, std::string_view(argument) == output};
      auto dims = parse_dims(text);
      if (dims.size() != value.rank)
        fail(ErrorCode::kInternal, "[op] argument {} declares dimensions \"{}\" but is {}", argument, text,
             shape_text(value));
      for (size_t d = 0; d < dims.size(); ++d) {
        operand.coordinate[d] = coordinate_of(dims[d].name);
        operand.scale[d] = dims[d].scale;
      }
      operands->push_back(operand);
    }
    void weight(const char*, Weight& value, const char* text) override {
      if (!value.data.exists()) return;
      // Panels in logical order: bytes [panel * panel_bytes, ...), as rows of padded panels.
      Operand operand{value.data, Access::kRead, {-1, -1, -1, -1}, {1, 1, 1, 1}, false};
      const i32 rows_of_panels = value.panels() / value.slices();
      operand.tensor.size[0] = rows_of_panels * value.panel_rows;
      operand.tensor.size[1] = value.slices() * value.padded_cols();
      operand.tensor.stride[0] = operand.tensor.size[1], operand.tensor.stride[1] = 1;
      const Dim rows = parse_dims(text)[0];
      operand.coordinate[0] = coordinate_of(rows.name);
      operand.scale[0] = rows.scale;
      operand.indexed = operand.coordinate[0] < 0;  // rows that no axis names are looked up
      operands->push_back(operand);
    }
    void attribute(const char*, i32&) override {}
    void attribute(const char*, float&) override {}
  } walk;
  walk.operands = &operands_;
  walk.output = op.traits.output;
  walk.axes = op.axes(args, TilingTarget{});
  op.visit(const_cast<std::byte*>(args), walk);
}

void RegionRule::append(const TileCoord& tile, const TileCoord& output_tile, std::vector<Region>& out) const {
  if (op_->regions) return op_->regions(args_, tile, out);
  for (const Operand& operand : operands_) {
    std::array<std::array<i32, 2>, kMaxRank> box;
    const TileCoord& at_tile = operand.output ? output_tile : tile;
    for (size_t d = 0; d < operand.tensor.rank; ++d) {
      const int at = operand.coordinate[d];
      const i32 size = operand.tensor.size[d];
      box[d] = {0, size};
      if (at < 0) continue;
      const i64 begin = i64(at_tile[at]) * operand.scale[d], end = i64(at_tile[at + 1]) * operand.scale[d];
      require(begin >= 0 && begin < end && end <= size,
              "[{}] a tile is elements [{}, {}) of a dimension that has {}", op_->name, begin, end, size);
      box[d] = {i32(begin), i32(end)};
    }
    out.push_back(region_of(operand.tensor, operand.access, std::span(box).first(operand.tensor.rank)));
    out.back().indexed = operand.indexed;
  }
}

}  // namespace heddle
