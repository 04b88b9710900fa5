// Says what fits the kernel of products, its configurations, and which one is best for a call.
#include "heddle/ops/matmul/product_kernel.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <tuple>

#include "heddle/base/integer.h"
#include "heddle/kit/arch/target.h"
#include "heddle/kit/move/box.h"
#include "heddle/ops/matmul/operand_copy.h"
#include "heddle/ops/matmul/product_memory.h"
#include "heddle/ops/matmul/tile_shapes.h"

namespace heddle {
namespace {

constexpr i64 kSlabBytes = 128, kPitch = 16;  // bytes that a row of a slab has, and between rows in memory

// Sizes of a tile and of what is brought at once. `brought`: rows of a that are brought, where a call has fewer than a tile.
struct Shape {
  i32 rows, brought, columns, slabs, cluster;
  i32 slab_ns;  // nanoseconds of a slab of 64 k of bf16, where the whole device works: measured on an H100
  i32 promoted_ns;      // so many for 128 k of fp8 whose sums are promoted
  i32 split = 1;        // parts of k, each in a CTA of its own
  i32 across = 1;       // CTAs along N that share a
  bool turned = false;  // tiles are those of y transposed

  i32 sharing() const { return cluster * across; }
};
bool is_same(const Shape& one, const Shape& other) {
  const auto of = [](const Shape& s) {
    return std::tuple(s.rows, s.brought, s.columns, s.cluster, s.across, s.split, s.turned);
  };
  return of(one) == of(other);
}
constexpr Shape kShapes[] = {
    {128, 128, 256, 1, 1, 580, 0},   {128, 128, 256, 1, 2, 596, 0},   {128, 128, 224, 1, 1, 519, 0},
    {128, 128, 192, 1, 1, 448, 585}, {128, 128, 160, 1, 1, 393, 540}, {128, 128, 128, 2, 1, 375, 441},
    {128, 128, 96, 2, 1, 353, 400},  {128, 128, 64, 2, 1, 259, 320},  {64, 64, 256, 1, 1, 331, 0},
    {64, 64, 224, 1, 1, 305, 0},     {64, 64, 192, 1, 1, 270, 348},   {64, 64, 160, 1, 1, 237, 320},
    {64, 64, 128, 2, 1, 211, 290},   {64, 64, 96, 2, 1, 192, 250},    {64, 64, 64, 2, 1, 120, 200},
    {64, 64, 32, 2, 1, 103, 170},    {64, 64, 16, 2, 1, 104, 165},    {64, 32, 64, 2, 1, 111, 195},
    {64, 32, 32, 2, 1, 96, 165},     {64, 32, 16, 2, 1, 98, 160},     {64, 16, 64, 2, 1, 110, 195},
    {64, 16, 32, 2, 1, 95, 165},     {64, 16, 16, 2, 1, 97, 160},     {64, 16, 8, 4, 1, 70, 155}};

// The product that a shape cuts: y' = b' a', where tiles are of y transposed.
ProductCall seen_by(const Shape& shape, const ProductCall& call) {
  ProductCall seen = call;
  if (!shape.turned) return seen;
  std::swap(seen.a, seen.b), std::swap(seen.at[0], seen.at[1]), std::swap(seen.rows, seen.columns);
  seen.a.transposed = !seen.a.transposed, seen.b.transposed = !seen.b.transposed;
  return seen;
}

i32 wide_of(const Shape& shape, const ProductCall& call) {
  return brought_columns(shape.columns, call.b.transposed ? tile::Major::kK : tile::Major::kOuter);
}

tile::Budget budget_of(const Shape& shape, const ProductCall& call, i32 stages) {
  return product_budget({shape.rows, shape.columns, wide_of(shape, seen_by(shape, call)), shape.slabs,
                         shape.split, call.scales},
                        size_of(call.y.dtype), stages);
}

i32 stages_of(const Shape& shape, const ProductCall& call, i64 shared_bytes) {
  constexpr i32 kMost = 12;
  return tile::most_stages(kMost, shared_bytes, [&](i32 stages) { return budget_of(shape, call, stages); });
}

// Long sums of few rows wait for the latency of each step. Only small tiles gain more by further CTAs than the exchange of sums
// takes. Such an order of sums is there for any number of rows.
constexpr i64 kLongSum = 2048;
constexpr i32 kSplits[] = {2, 4, 8}, kPartSlabs = 2;  // parts are multiples of so many slabs
// Sums of one slab and of all lie in registers side by side.
constexpr i32 kMostPromoted = 192;
bool takes_parts(const Shape& shape, i64 slabs) {
  const i64 part = ceil_div(slabs, shape.split * kPartSlabs) * kPartSlabs;
  const bool fits = shape.rows == 64 ? shape.columns == 32 || shape.columns == 64
                                     : shape.columns == 64 || shape.columns == 128;
  return shape.sharing() == 1 && fits && shape.columns / shape.split % 8 == 0 &&
         (shape.split - 1) * part < slabs;
}

// Returns the bytes from line to line of a matrix with two or three dimensions.
i64 row_pitch(const Tensor& data) {
  return data.stride[data.rank - 2] * size_of(data.dtype);
}

i64 slab_terms(const ProductCall& call) {
  return kSlabBytes / size_of(call.a.data.dtype);
}

bool fits(const Shape& shape, const ProductCall& call) {
  const bool along_k = call.b.transposed;
  if (shape.columns % ((along_k ? 8 : 64) * shape.cluster) != 0) return false;
  if (call.is_grouped && (shape.sharing() > 1 || shape.split > 1 || shape.brought != shape.rows))
    return false;
  if (call.promotes && shape.columns > kMostPromoted) return false;
  if (call.scales == 2 && shape.columns % 64 != 0) return false;
  if (shape.split > 1 &&
      (call.is_fp8 || call.terms < kLongSum || !takes_parts(shape, ceil_div(call.terms, slab_terms(call)))))
    return false;
  if (shape.brought == shape.rows) return true;
  return !call.a.transposed && call.rows <= shape.brought;
}

i64 clusters_of(const Shape& shape, const ProductCall& call) {
  return call.batches * ceil_div(call.rows, i64(shape.rows) * shape.cluster) *
         ceil_div(call.columns, i64(shape.columns) * shape.across);
}

// Nanoseconds of a call without its launch.
double cost(const Shape& shape, const ProductCall& call, i32 multiprocessors) {
  constexpr double kTile = 230, kExchange = 1965;
  const i64 waves = ceil_div(clusters_of(shape, call), multiprocessors / (shape.cluster * shape.split));
  const i64 slabs = ceil_div(call.terms, slab_terms(call) * shape.slabs * shape.split) * shape.slabs;
  const i32 slab_ns = call.promotes ? shape.promoted_ns : shape.slab_ns;
  return double(waves) * (double(slabs) * slab_ns + kTile + (shape.split > 1 ? kExchange : 0));
}

std::string why_pitch(const char* name, const Tensor& data, const char* lines) {
  if (const i64 pitch = row_pitch(data); pitch % kPitch != 0)
    return fmt::format("{}'s {} are {} bytes apart; must be a multiple of {}", name, lines, pitch, kPitch);
  const i64 apart = data.stride[0] * size_of(data.dtype);
  if (data.rank == 2 || data.size[0] == 1 || (apart > 0 && apart % kPitch == 0)) return {};
  return fmt::format("{}'s matrices are {} bytes apart; must be a positive multiple of {}", name, apart,
                     kPitch);
}

std::string why_dtypes(const ProductCall& call) {
  const DType left = call.a.data.dtype, right = call.b.data.dtype;
  if (call.is_fp8 || call.is_tf32) {
    if (call.a.transposed) return fmt::format("a is {} in columns; must lie in rows", name(left));
    if (!call.b.transposed) return fmt::format("b is {} in rows; must lie in columns", name(right));
    return {};
  }
  if (left == right && is_wide_float(left) && size_of(left) == 2) return {};
  return fmt::format("a is {} and b is {}; must both be bf16 or f16, or f32 where tf32 is allowed",
                     name(left), name(right));
}

// Bulk copies want lines that begin at multiples of 16 bytes.
bool lies_anywhere(const Tensor& data) {
  return reinterpret_cast<u64>(data.data) % kPitch != 0 || !why_pitch("", data, "").empty();
}
// Bulk stores write words of 16 bytes: zeros to what lies after the last column of a matrix whose rows end within one (H200).
bool is_stored_by_threads(const Tensor& y) {
  return lies_anywhere(y) || y.last() * size_of(y.dtype) % kPitch != 0;
}
i32 copies_of(const ProductCall& call) {
  return (lies_anywhere(call.a.data) ? kCopiesA : 0) | (lies_anywhere(call.b.data) ? kCopiesB : 0);
}

// Nothing here may follow from the number of rows: the tiles of the body have other sums.
std::string why_not(const ProductCall& call, const KernelTarget& target) {
  if (std::string why = why_not_sm90(target); !why.empty()) return why;
  if (!call.why_not.empty()) return call.why_not;
  if (std::string why = why_operands(call); !why.empty()) return why;
  if (call.is_grouped && (copies_of(call) != 0 || is_stored_by_threads(call.y)))
    return "a, b or y has lines or begins that are no multiples of 16 bytes";
  constexpr i64 kFew =
      64 * 64;  // 33 x 33 x 33 takes 5.7 us by tiles, 7.6 with copies; 129 x 129 x 129 9.3 and 7.9 (H200)
  if (copies_of(call) != 0 && i64(call.columns) * call.terms <= kFew)
    return "it has few columns and terms, and operands that would have to be copied first";
  return {};
}

// Bytes that all lines of a matrix begin at multiples of, at most 128.
i64 line_unit(const Tensor& data) {
  return std::gcd(std::gcd(row_pitch(data), i64(reinterpret_cast<u64>(data.data))), kSlabBytes);
}
// The time to bring 128 bytes of a line, in lines of memory: most lie in two where lines begin anywhere.
double lines_for(const Tensor& data) {
  constexpr double kSecond = 0.16, kSector = 0.35;  // a second line; a fifth sector of 32 bytes
  const i64 unit = line_unit(data);
  return 1 + kSecond * (1 - double(unit) / kSlabBytes) + (unit == kPitch ? kSector : 0);
}

// True for products whose lines do not all begin at multiples of 128 bytes, so that two lines of memory hold most rows of a slab. Where
// others take other tiles was not measured: batches, few rows, f32, and operands that are copied.
bool is_cut(const ProductCall& call) {
  constexpr i32 kMeasuredRows = 128;
  if (call.is_fp8 || call.is_tf32 || call.is_grouped || call.batches > 1 || call.rows < kMeasuredRows ||
      copies_of(call) != 0 || is_stored_by_threads(call.y))
    return false;
  return line_unit(call.a.data) < kSlabBytes || line_unit(call.b.data) < kSlabBytes;
}

// Nanoseconds of a product that is cut. The constants fit 3,000 times of tiles of 128 random products of bf16 in all layouts on an H200
// (30 November 2026); the root mean square of the errors is 6 %.
double cut_cost(const Shape& shape, const ProductCall& all, i32 multiprocessors) {
  constexpr double kLaunch = 2395, kCluster = 1447, kShared = 54;  // for a launch, and for a slab
  constexpr double kLine = 1.55, kAlone = 0.56;  // a line, and the part of its time if no other CTA works
  constexpr double kTail = 0.056;                // a sum of columns that are stored twice
  const ProductCall call = seen_by(shape, all);
  const bool is_tall = shape.rows == 256, shares = shape.sharing() > 1;
  const double area = double(shape.rows) * shape.columns;
  const double products = area * (shape.rows == 64 ? 0.0165 : is_tall ? 0.0190 : 0.0186);
  const double store =
      (is_tall ? 0.0675 * area - 318 : 0.0321 * area + 350) + kTail * shape.rows * (shape.columns % 64);
  const double lines = kLine * (shape.rows * lines_for(call.a.data) / shape.across +
                                wide_of(shape, call) * lines_for(call.b.data) / shape.cluster);
  const i64 slabs = ceil_div(call.terms, slab_terms(call) * shape.slabs) * shape.slabs;
  // Multiprocessors share what brings lines: those of a wave's few CTAs come sooner.
  const auto wave = [&](double part) {
    const double slab = std::max(products, lines * (kAlone + (1 - kAlone) * part)) + (shares ? kShared : 0);
    return double(slabs) * slab + store;
  };
  const i64 clusters = clusters_of(shape, call), at_once = multiprocessors / shape.sharing();
  const i64 full = clusters / at_once, rest = clusters % at_once;
  return kLaunch + (shares ? kCluster : 0) + double(full) * wave(1) +
         (rest > 0 ? wave(double(rest) / double(at_once)) : 0);
}

// The tiles of a product that is cut, each with CTAs that share an operand, and turned.
std::vector<Shape> cut_shapes(const ProductCall& call) {
  constexpr i32 kStep = 16, kFewest = 64;
  constexpr std::pair<i32, i32> kSharings[] = {{1, 1}, {2, 1}, {1, 2}};
  std::vector<Shape> shapes;
  for (const bool turned : {false, true})
    for (const i32 rows : {64, 128, 256})
      for (i32 columns = kFewest; columns <= (rows == 256 ? 176 : 256); columns += kStep)
        for (const auto& [cluster, across] : kSharings) {
          if (rows == 64 && (turned || cluster * across > 1)) continue;
          if (turned && size_of(call.y.dtype) != 2) continue;
          const i32 slabs = rows < 256 && columns <= 128 ? 2 : 1;
          shapes.push_back({.rows = rows,
                            .brought = rows,
                            .columns = columns,
                            .slabs = slabs,
                            .cluster = cluster,
                            .across = across,
                            .turned = turned});
        }
  return shapes;
}

// Has the plan copy the operands that lie anywhere, and the maps of the product bring the copies.
void add_copies(KernelPlan& plan, const ProductCall& call, const KernelTarget& target) {
  constexpr i64 kPart = 2048;           // bytes that a warp copies at once
  constexpr i64 kOfCta = 8, kCtas = 8;  // warps of a CTA, and CTAs of a multiprocessor
  const i32 copies = copies_of(call);
  i64 parts = 0;
  for (size_t i = 0; i < 2; ++i) {
    const Tensor& data = i == 0 ? call.a.data : call.b.data;
    if ((copies & (i == 0 ? kCopiesA : kCopiesB)) == 0) continue;
    const OperandCopy made(data);
    KernelMap& map = plan.launches.front().maps[i];
    map.in_workspace = true, map.offset = plan.workspace_bytes;
    map.stride[1] = made.pitch;
    if (data.rank == 3 && data.size[0] > 1) map.stride[2] = data.size[1] * made.pitch;
    plan.workspace_bytes += made.all();
    parts += made.lines * ceil_div(made.bytes, kPart);
  }
  const i64 grid = std::min(ceil_div(parts, kOfCta), kCtas * target.multiprocessors);
  const KernelLaunch first{.name = "CopyKernel", .grid = u32(grid), .threads = 32 * kOfCta};
  plan.launches.insert(plan.launches.begin(), first);
  plan.constants = OpConfig::parse(fmt::format("{},copies={}", plan.constants.text(), copies));
}

KernelLaunch launch_of(const ProductCall& all, const Shape& shape, i32 stages, const KernelTarget& target) {
  const ProductCall call = seen_by(shape, all);
  const i32 in_cluster = shape.sharing() * shape.split;
  const tile::Budget budget = budget_of(shape, all, stages);
  KernelLaunch launch{
      .cluster = u32(in_cluster), .threads = u32(budget.threads()), .shared_bytes = budget.shared_bytes()};
  launch.grid =
      u32(std::min<i64>(clusters_of(shape, call), target.multiprocessors / in_cluster) * in_cluster);
  const auto operand = [](const Matrices& matrix, bool is_rows, i32 lines) {
    return product_operand(lines, size_of(matrix.data.dtype),
                           is_rows ? tile::Major::kK : tile::Major::kOuter);
  };
  launch.maps = {
      box_map(call.at[0], call.a.data, operand(call.a, !call.a.transposed, shape.brought / shape.across)),
      box_map(call.at[1], call.b.data, operand(call.b, call.b.transposed, shape.columns / shape.cluster)),
      box_map(call.at[2], call.y, product_operand(64, size_of(call.y.dtype), tile::Major::kK))};
  for (size_t i = 0; i < 2; ++i) launch.maps[i].rounds_to_tf32 = call.is_tf32;
  if (is_stored_by_threads(call.y)) launch.maps.pop_back();
  return launch;
}

// The shapes with so many parts of k that fit, the likely best first.
std::vector<Shape> ranked(const ProductCall& call, const KernelTarget& target, i32 split) {
  constexpr double kSurely = 0.97;  // where less is gained, the first one was the better one at times
  const bool cut = split == 1 && is_cut(call);
  std::vector<Shape> shapes;
  for (Shape shape : kShapes) {
    shape.split = split;
    if (call.promotes) shape.slabs = 1;
    if (fits(shape, call)) shapes.push_back(shape);
  }
  const i32 units = target.multiprocessors;
  std::ranges::stable_sort(shapes, {}, [&](const Shape& shape) { return cost(shape, call, units); });
  if (!cut || shapes.empty()) return shapes;
  // The best of all shapes, where that is surely better than the first one of those above.
  const auto cost_of = [&](const Shape& shape) { return cut_cost(shape, call, units); };
  const Shape first = shapes.front();
  shapes = cut_shapes(call);
  std::erase_if(shapes, [&](const Shape& shape) { return is_same(shape, first); });
  std::ranges::stable_sort(shapes, {}, cost_of);
  shapes.insert(shapes.begin() + (cost_of(shapes.front()) < kSurely * cost_of(first)), first);
  return shapes;
}

OpConfig config_of(const Shape& shape, const ProductCall& call, const KernelTarget& target) {
  const i32 stages = stages_of(shape, call, target.shared_bytes);
  OpConfig config{{"kernel", 1},
                  {"rows", shape.rows},
                  {"brought", shape.brought},
                  {"columns", shape.columns},
                  {"slabs", shape.slabs},
                  {"cluster", shape.cluster},
                  {"split", shape.split},
                  {"stages", stages}};
  if (shape.turned) config = OpConfig::parse(fmt::format("{},turned=1", config.text()));
  if (shape.across > 1) config = OpConfig::parse(fmt::format("{},across={}", config.text(), shape.across));
  if (!call.is_fp8) return config;
  return OpConfig::parse(
      fmt::format("{},promotes={},scales={}", config.text(), int(call.promotes), call.scales));
}

}  // namespace

std::string why_operands(const ProductCall& call) {
  if (std::string why = why_dtypes(call); !why.empty()) return why;
  if (!is_wide_float(call.y.dtype)) return fmt::format("y is {}", name(call.y.dtype));
  if (call.terms == 0) return "there are no terms to add";
  return {};
}

std::string why_pitches(const ProductCall& call) {
  const auto lines = [](const Matrices& matrix) { return matrix.transposed ? "columns" : "rows"; };
  if (std::string why = why_pitch("a", call.a.data, lines(call.a)); !why.empty()) return why;
  if (std::string why = why_pitch("b", call.b.data, lines(call.b)); !why.empty()) return why;
  return why_pitch("y", call.y, "rows");
}

std::vector<OpConfig> product_kernel_configs(const ProductCall& call, const KernelTarget& target) {
  constexpr size_t kMost = 8, kMostSplit = 3;
  std::vector<OpConfig> configs;
  if (!why_not(call, target).empty()) return configs;
  const auto add = [&](i32 split, size_t most) {
    const std::vector<Shape> shapes = ranked(call, target, split);
    for (const Shape& shape : shapes | std::views::take(most)) {
      const OpConfig config = config_of(shape, call, target);
      configs.push_back(split == 1 ? config : config.reordering());
    }
  };
  add(1, kMost);
  for (const i32 split : kSplits) add(split, kMostSplit);
  return configs;
}

KernelPlan product_kernel(const ProductCall& call, const KernelTarget& target, const OpConfig& config) {
  KernelPlan plan{.why_not = why_not(call, target), .file = "sm90", .from_anywhere = true};
  if (!plan.why_not.empty()) return plan;
  const i32 split = config.contains("split") ? i32(config.at("split")) : 1;
  const std::vector<Shape> shapes = ranked(call, target, split);
  const Shape& chosen =
      shape_of(call.op, shapes, config, [&](const Shape& shape) { return config_of(shape, call, target); });
  plan.constants = config_of(chosen, call, target);
  plan.launches.push_back(launch_of(call, chosen, stages_of(chosen, call, target.shared_bytes), target));
  if (is_stored_by_threads(call.y))
    plan.constants = OpConfig::parse(fmt::format("{},direct=1", plan.constants.text()));
  if (copies_of(call) != 0) add_copies(plan, call, target);
  return plan;
}

}  // namespace heddle
