#include "heddle/ir/op.h"

#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/ir/shape.h"

namespace heddle {

namespace {

// region_of for a matrix of i4, whose rows begin at whole bytes.
Region region_of_pairs(const Tensor& tensor, Region region, std::span<const std::array<i32, 2>> box) {
  region.offset += (box[0][0] * tensor.stride[0] + box[1][0]) / 2;
  region.run = (box[1][1] + 1) / 2 - box[1][0] / 2;
  region.count[1] = box[0][1] - box[0][0];
  region.stride[1] = region.count[1] > 1 ? tensor.stride[0] / 2 : 0;
  return region;
}

}  // namespace

OpSpec::OpSpec() = default;
OpSpec::OpSpec(const OpSpec&) = default;
OpSpec::OpSpec(OpSpec&&) noexcept = default;
OpSpec& OpSpec::operator=(const OpSpec&) = default;
OpSpec& OpSpec::operator=(OpSpec&&) noexcept = default;
OpSpec::~OpSpec() = default;

OpSpec op_with(const char* name, const char* doc, const ArgsType& type) {
  OpSpec spec;
  spec.name = name;
  spec.doc = doc;
  spec.args_fields = type.count;
  spec.defaults.resize(type.size);
  type.list(spec.defaults.data(), spec.fields);
  find_attribute_dims(spec.fields);
  return spec;
}

Region region_of(const Tensor& tensor, Access access, std::span<const std::array<i32, 2>> box) {
  Region region;
  region.buffer = tensor.buffer;
  region.access = access;
  region.offset = tensor.offset;
  if (tensor.dtype == DType::kI4) return region_of_pairs(tensor, region, box);
  region.run = size_of(tensor.dtype);
  // Goes from the last dimension outwards. A dimension whose rows are adjacent widens the run; the others
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
      HEDDLE_CHECK(level >= 0);  // a part of a tensor of rank 4 with strides in three dimensions
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

namespace {

// The first tile coordinate of the axis with that name; -1: there is none.
int coordinate_of(std::span<const TileAxis> axes, const std::string& dim) {
  int at = 0;
  for (const TileAxis& axis : axes) {
    if (dim == axis.dim) return at;
    at += axis.kind == TileAxis::Kind::kRange ? 2 : 1;
  }
  return -1;
}

}  // namespace

std::vector<OpConfig> configs_of(const OpSpec& op, const std::byte* args, const TilingTarget& target) {
  return op.configs ? op.configs(args, target) : std::vector<OpConfig>{};
}

OpConfig find_config(const OpSpec& op, const std::byte* args, const TilingTarget& target,
                     const OpConfig& wanted) {
  std::string all;
  for (const OpConfig& config : configs_of(op, args, target)) {
    if (config.values() == wanted.values()) return config;
    all += (all.empty() ? "" : "; ") + config.text();
  }
  require(!all.empty(), "[{}] has no configurations for such a call; {} cannot be chosen", op.name,
          wanted.text());
  fail(ErrorCode::kInvalidArgument, "[{}] has no configuration {}; it has {}", op.name, wanted.text(), all);
}

RegionRule::RegionRule(const OpSpec& op, const std::byte* args) : op_(&op), args_(args) {
  const std::vector<TileAxis> axes = op.axes(args, TilingTarget{});
  for (const Field& field : op.fields) {
    if (field.is_attribute() || !field.elements(args).exists()) continue;
    Operand operand{field.elements(args), field.access, {-1, -1, -1, -1}, {1, 1, 1, 1}};
    operand.output = field.name == op.traits.output;
    if (field.dims.size() != operand.tensor.rank)
      fail(ErrorCode::kInternal, "[{}] argument {} declares dimensions \"{}\" but is {}", op.name, field.name,
           field.dims_text, shape_text(operand.tensor));
    if (field.is_weight()) {
      // Panels in logical order: bytes [panel * panel_bytes, ...), as rows that share their panel's bytes.
      const Weight& weight = field.weight(args);
      operand.tensor.size[0] = weight.panels() / weight.slices() * weight.panel_rows;
      if (weight.is_coded()) {
        operand.tensor.dtype = DType::kU8;
        operand.tensor.size[1] = i32(weight.panel_bytes() / weight.panel_rows);
      } else {
        operand.tensor.size[1] = weight.slices() * weight.padded_cols();
      }
      operand.tensor.stride[0] = operand.tensor.size[1], operand.tensor.stride[1] = 1;
    }
    const size_t named = field.is_weight() ? 1 : field.dims.size();  // columns of panels have no names
    const std::vector<FieldDim> dims = field.dims_of(args);
    for (size_t d = 0; d < named; ++d) {
      operand.coordinate[d] = coordinate_of(axes, dims[d].name);
      operand.scale[d] = dims[d].scale;
    }
    // No axis names the rows of this weight, so they are looked up.
    operand.indexed = field.is_weight() && operand.coordinate[0] < 0;
    operands_.push_back(operand);
  }
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
