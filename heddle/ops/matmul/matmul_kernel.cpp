// How matmul runs as a whole kernel (matmul_kernel.sm90.cuh): what fits, its configurations, and which one is best for a call.
#include <algorithm>
#include <cstddef>

#include "heddle/ir/rules.h"
#include "heddle/ops/matmul/matmul.h"

namespace heddle {
namespace {

constexpr i64 kSlabBytes = 128, kPitch = 16;  // bytes that a row of a slab has, and between rows in memory
constexpr i64 kSlabK = 64;

// Sizes of a tile and of what is brought at once. `brought`: rows of a that are brought, where a call has fewer than a tile.
struct Shape {
  i32 rows, brought, columns, slabs, cluster;
  i32 slab_ns;  // nanoseconds of a slab of 64 k, where the whole device works: measured on an H100 by bench/gemm.py
  i32 split = 1;  // parts of k, each in a CTA of its own
};
constexpr Shape kShapes[] = {
    {128, 128, 256, 1, 1, 580}, {128, 128, 256, 1, 2, 596}, {128, 128, 224, 1, 1, 519},
    {128, 128, 192, 1, 1, 448}, {128, 128, 160, 1, 1, 393}, {128, 128, 128, 2, 1, 375},
    {128, 128, 96, 2, 1, 353},  {128, 128, 64, 2, 1, 259},  {64, 64, 256, 1, 1, 331},
    {64, 64, 224, 1, 1, 305},   {64, 64, 192, 1, 1, 270},   {64, 64, 160, 1, 1, 237},
    {64, 64, 128, 2, 1, 211},   {64, 64, 96, 2, 1, 192},    {64, 64, 64, 2, 1, 120},
    {64, 64, 32, 2, 1, 103},    {64, 64, 16, 2, 1, 104},    {64, 32, 64, 2, 1, 111},
    {64, 32, 32, 2, 1, 96},     {64, 32, 16, 2, 1, 98},     {64, 16, 64, 2, 1, 110},
    {64, 16, 32, 2, 1, 95},     {64, 16, 16, 2, 1, 97},     {64, 16, 8, 4, 1, 70}};

// Bytes of shared memory besides the ring: what the groups store through, and the sums that they give each other.
i64 stage_bytes(const Shape& shape, DType out) {
  const i64 own = shape.columns / shape.split, groups = shape.rows / 64;
  const i64 part = own < 64 ? 0 : own % 128 == 0 && shape.split == 1 ? 128 : 64;
  const i64 halves = shape.split > 1 ? 128 * (shape.columns / 4) * 4 + 16 : 0;
  return groups * ((part * size_of(out) + 127) / 128 * 8192 + halves);
}

i64 slot_bytes(const Shape& shape) {
  return i64(shape.slabs) * (shape.rows + shape.columns) * kSlabBytes;
}

constexpr i64 kBarrierBytes = 16;  // a stage
constexpr i64 kMostStages = 12;

i64 stages_of(const Shape& shape, DType out, i64 shared_bytes) {
  return std::min(kMostStages,
                  (shared_bytes - stage_bytes(shape, out)) / (slot_bytes(shape) + kBarrierBytes));
}

OpConfig config_of(const Shape& shape, i64 stages) {
  return {{"kernel", 1},
          {"rows", shape.rows},
          {"brought", shape.brought},
          {"columns", shape.columns},
          {"slabs", shape.slabs},
          {"cluster", shape.cluster},
          {"split", shape.split},
          {"stages", stages}};
}

// Long sums of few rows wait for the latency of each step. Only small tiles gain more by a second CTA than the exchange of sums
// takes. Such an order of sums is there for any number of rows.
constexpr i64 kLongSum = 2048;
bool takes_parts(const Shape& shape) {
  return shape.cluster == 1 && shape.rows == 64 && shape.brought == 64 &&
         (shape.columns == 32 || shape.columns == 64);
}

bool fits(const Shape& shape, const Matmul& a) {
  const bool along_k = a.b.transposed;
  if (shape.columns % ((along_k ? 8 : 64) * shape.cluster) != 0) return false;
  if (shape.split > 1) return takes_parts(shape) && a.a.cols() >= kLongSum;
  if (shape.brought == shape.rows) return true;
  return !a.a.transposed && a.a.rows() <= shape.brought;
}

i64 count(i64 all, i64 one) {
  return (all + one - 1) / one;
}

i64 clusters_of(const Shape& shape, const Matmul& a) {
  return count(a.a.rows(), i64(shape.rows) * shape.cluster) * count(a.b.cols(), shape.columns);
}

// Nanoseconds of a call without its launch.
double cost(const Shape& shape, const Matmul& a, i32 multiprocessors) {
  constexpr double kTile = 230, kExchange = 1965;
  const i64 waves = count(clusters_of(shape, a), multiprocessors / (shape.cluster * shape.split));
  const i64 slabs = count(a.a.cols(), kSlabK * shape.slabs * shape.split) * shape.slabs;
  return double(waves) * (double(slabs) * shape.slab_ns + kTile + (shape.split - 1) * kExchange);
}

std::string why_matrix(const char* name, const Matrix& matrix) {
  if (matrix.scales.exists() || matrix.zeros.exists()) return fmt::format("{} has scales", name);
  const i64 pitch = matrix.data.stride[0] * size_of(matrix.data.dtype);
  if (pitch % kPitch == 0) return {};
  return fmt::format("{}'s {} are {} bytes apart; must be a multiple of {}", name,
                     matrix.transposed ? "columns" : "rows", pitch, kPitch);
}

// Nothing here may follow from the number of rows: the tiles of the body have other sums.
std::string why_not(const Matmul& a, const KernelTarget& target) {
  if (target.arch != 90 || !target.tensor_maps) return "it is for compute capability 9.0 with tensor maps";
  const DType left = a.a.data.dtype, right = a.b.data.dtype;
  if (left != right || !is_wide_float(left) || size_of(left) != 2)
    return fmt::format("a is {} and b is {}; must both be bf16 or f16", name(left), name(right));
  if (!is_wide_float(a.y.dtype)) return fmt::format("y is {}", name(a.y.dtype));
  if (a.a.cols() == 0) return "there are no terms to add";
  if (std::string why = why_matrix("a", a.a); !why.empty()) return why;
  if (std::string why = why_matrix("b", a.b); !why.empty()) return why;
  if (const i64 pitch = a.y.stride[0] * size_of(a.y.dtype); pitch % kPitch != 0)
    return fmt::format("y's rows are {} bytes apart; must be a multiple of {}", pitch, kPitch);
  return {};
}

// A box of the matrix that is one block of 128 bytes wide.
KernelMap map_of(size_t address, const Tensor& data, i32 wide, i32 high) {
  return {.address = u32(address + offsetof(Tensor, data)),
          .dtype = data.dtype,
          .size = {data.size[1], data.size[0]},
          .stride = {0, data.stride[0] * size_of(data.dtype)},
          .box = {wide, high}};
}

KernelLaunch launch_of(const Matmul& a, const Shape& shape, i64 stages, const KernelTarget& target) {
  const i32 in_cluster = shape.cluster * shape.split;
  KernelLaunch launch{.cluster = u32(in_cluster), .threads = u32(128 * (shape.rows / 64 + 1))};
  launch.grid = u32(std::min<i64>(clusters_of(shape, a), target.multiprocessors / in_cluster) * in_cluster);
  launch.shared_bytes = stages * (slot_bytes(shape) + kBarrierBytes) + stage_bytes(shape, a.y.dtype);
  constexpr i32 kBlock = 64;  // elements of 128 bytes
  const i32 part = shape.columns / shape.cluster;
  launch.maps.push_back(map_of(offsetof(Matmul, a) + offsetof(Matrix, data), a.a.data, kBlock,
                               a.a.transposed ? kBlock : shape.brought));
  launch.maps.push_back(
      map_of(offsetof(Matmul, b) + offsetof(Matrix, data), a.b.data, kBlock, a.b.transposed ? part : kBlock));
  launch.maps.push_back(map_of(offsetof(Matmul, y), a.y, 128 / size_of(a.y.dtype), kBlock));
  return launch;
}

// The shapes with so many parts of k that fit, the likely best first.
std::vector<Shape> ranked(const Matmul& a, const KernelTarget& target, i32 split) {
  std::vector<Shape> shapes;
  for (Shape shape : kShapes) {
    shape.split = split;
    if (fits(shape, a)) shapes.push_back(shape);
  }
  std::ranges::stable_sort(shapes, {},
                           [&](const Shape& shape) { return cost(shape, a, target.multiprocessors); });
  return shapes;
}

}  // namespace

// The best for such a call. Those with one part of k give the same bits.
std::vector<OpConfig> matmul_kernel_configs(const Matmul& a, const KernelTarget& target) {
  constexpr size_t kMost = 8;
  std::vector<OpConfig> configs;
  if (!why_not(a, target).empty()) return configs;
  for (const i32 split : {1, 2})
    for (const Shape& shape : ranked(a, target, split)) {
      if (split == 1 && configs.size() == kMost) break;
      const OpConfig config = config_of(shape, stages_of(shape, a.y.dtype, target.shared_bytes));
      configs.push_back(split == 1 ? config : config.reordering());
    }
  return configs;
}

KernelPlan matmul_kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config) {
  const auto& a = as<Matmul>(args);
  KernelPlan plan{.why_not = why_not(a, target), .file = "sm90"};
  if (!plan.why_not.empty()) return plan;
  const i32 split = config.contains("split") ? i32(config.at("split")) : 1;
  const std::vector<Shape> shapes = ranked(a, target, split);
  const auto stages = [&](const Shape& shape) { return stages_of(shape, a.y.dtype, target.shared_bytes); };
  const auto chosen = std::ranges::find_if(shapes, [&](const Shape& shape) {
    return config.values().empty() || config_of(shape, stages(shape)).values() == config.values();
  });
  require(chosen != shapes.end(), "[matmul] its kernel has no configuration {}", config.text());
  plan.constants = config_of(*chosen, stages(*chosen));
  plan.launches.push_back(launch_of(a, *chosen, stages(*chosen), target));
  return plan;
}

}  // namespace heddle
