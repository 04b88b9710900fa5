#include "heddle/ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "heddle/ir/rules.h"
#include "heddle/ir/values.h"

namespace heddle::attention {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

void require_cut(const Attention& a) {
  require(
      a.block_rows > 0 && a.max_blocks > 0 && a.max_splits > 0 && a.split_unit > 0 && a.chunk > 0,
      "[attention] block_rows = {}, max_blocks = {}, max_splits = {}, split_unit = {}, chunk = {}; must be "
      "positive",
      a.block_rows, a.max_blocks, a.max_splits, a.split_unit, a.chunk);
  require(a.window >= 0 && a.softcap >= 0,
          "[attention] window = {}, softcap = {}; must be positive, or 0 for none", a.window, a.softcap);
}

void require_heads(const Attention& a) {
  require(a.kv_heads > 0 && a.heads > 0 && a.heads % a.kv_heads == 0 && a.block_heads > 0 &&
              a.group() % a.block_heads == 0,
          "[attention] heads = {}, kv_heads = {}, block_heads = {}; heads must be a positive multiple of "
          "kv_heads, and blocks must divide those of one kv head",
          a.heads, a.kv_heads, a.block_heads);
}

// `heads` neighbouring heads of `dim` elements each.
void require_rows(const Attention& a, const char* name, const Tensor& tensor, i32 heads, i32 dim) {
  constexpr i64 kMostColumns = std::numeric_limits<i32>::max();
  require(i64(heads) * dim <= kMostColumns, "[attention] {} has {} heads of {}; together at most {} elements",
          name, heads, dim, kMostColumns);
  require_shape("attention", name, tensor, {a.q.size[0], heads * dim});
  require_float("attention", name, tensor);
}

void infer(std::byte* args) {
  auto& a = as<Attention>(args);
  require_record("attention", "step", a.step);
  require_record("attention", "state", a.state);
  require_heads(a);
  for (auto [name, pages] : {std::pair{"keys", &a.keys}, {"values", &a.values}}) {
    require_rank("attention", name, *pages, 4);
    require_float("attention", name, *pages);
    require_shape("attention", name, *pages, {a.keys.size[0], a.kv_heads, a.keys.size[2], pages->size[3]});
  }
  require_rank("attention", "q", a.q, 2);
  require_rows(a, "q", a.q, a.heads, a.head_dim());
  require_rows(a, "k", a.k, a.kv_heads, a.head_dim());
  require_rows(a, "v", a.v, a.kv_heads, a.value_dim());
  if (a.is_latent()) {
    require_rows(a, "latent", a.latent, a.heads, a.value_dim());
    require_dtype("attention", "values", a.values, a.keys.dtype);
    require(a.head_dim() % 2 == 0, "[attention] head_dim = {}; must be even beside a latent part",
            a.head_dim());
  }
  if (a.has_bias()) {
    require_rank("attention", "bias", a.bias, 2);
    require_shape("attention", "bias", a.bias, {a.heads, a.bias.size[1]});
    require_dtype("attention", "bias", a.bias, DType::kF32);
  }
  require_cut(a);
  set_output("attention", "part", a.part, DType::kF32,
             {a.q.size[0], a.heads, a.split_tiles(), a.value_dim()});
  set_output("attention", "stats", a.stats, DType::kF32, {a.q.size[0], a.heads, a.split_tiles(), 2});
  require_float("attention", "part", a.part);
  require_dtype("attention", "stats", a.stats, DType::kF32);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Attention>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.heads / a.block_heads},
          {.kind = TileAxis::Kind::kIndex, .extent = a.max_blocks},
          {.kind = TileAxis::Kind::kIndex, .extent = a.split_tiles()}};
}

// The walk of tiles of many queries over their positions (attention_mma.sm80.cuh), where the types and
// dimensions of a call go that way. A query's maximum and sums change with every step.
std::vector<OpConfig> configs(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<Attention>(args);
  const i32 dim = a.head_dim();
  const bool narrow = std::ranges::all_of(
      std::array{&a.q, &a.k, &a.v, &a.keys, &a.values},
      [&](const Tensor* of) { return of->dtype == a.keys.dtype && size_of(of->dtype) == 2; });
  if (!target.gpu || !narrow || a.is_latent() || a.has_bias() || a.value_dim() != dim ||
      (dim != 64 && dim != 128 && dim != 256))
    return {};
  const i64 most = dim <= 64 ? 64 : dim <= 128 ? 32 : 16;
  std::vector<OpConfig> all;
  for (i64 step = most; step >= 16; step /= 2)
    for (const i64 stages : {4, 3}) {
      const OpConfig config{{"step", step}, {"stages", stages}};
      all.push_back(step == most ? config : config.reordering());
    }
  return all;
}

// Which rows a tile handles follows from the step record; its heads and its split are its own.
void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<Attention>(args);
  const i32 rows = a.q.size[0], head = t[0] * a.block_heads, kv_head = a.kv_head(t[0]);
  out.push_back(whole(a.step, Access::kRead));
  out.push_back(whole(a.state, Access::kRead));
  const auto read_heads = [&](const Tensor& tensor, i32 first, i32 count, i32 dim) {
    if (tensor.exists())
      out.push_back(part_of(tensor, Access::kRead, {{0, rows}, {first * dim, (first + count) * dim}}));
  };
  read_heads(a.q, head, a.block_heads, a.head_dim());
  read_heads(a.latent, head, a.block_heads, a.value_dim());
  read_heads(a.k, kv_head, 1, a.head_dim());
  read_heads(a.v, kv_head, 1, a.value_dim());
  for (const Tensor* pages : {&a.keys, &a.values})
    out.push_back(
        part_of(*pages, Access::kRead,
                {{0, pages->size[0]}, {kv_head, kv_head + 1}, {0, pages->size[2]}, {0, pages->last()}}));
  if (a.has_bias())
    out.push_back(part_of(a.bias, Access::kRead, {{head, head + a.block_heads}, {0, a.bias.last()}}));
  for (const Tensor* made : {&a.part, &a.stats}) {
    out.push_back(part_of(*made, Access::kWrite,
                          {{0, rows}, {head, head + a.block_heads}, {t[2], t[2] + 1}, {0, made->last()}}));
    out.back().indexed = true;
  }
}

double flops(const std::byte* args, const TileCoord&) {
  const auto& a = as<Attention>(args);
  return 2.0 * a.split_unit * (a.score_dim() + a.value_dim()) * a.block_heads * a.block_rows;
}

// Keys and values of a part, as `flops` has it.
double stream_bytes(const std::byte* args, const TileCoord&) {
  const auto& a = as<Attention>(args);
  return double(a.split_unit) *
         (a.head_dim() * size_of(a.keys.dtype) + a.value_dim() * size_of(a.values.dtype));
}

i64 scratch(const std::byte* args, const TileCoord&) {
  const auto& a = as<Attention>(args);
  const i64 queries = i64(a.block_heads) * a.block_rows;
  const i64 right = i64(a.score_dim()) * size_of(a.keys.dtype) + i64(a.value_dim()) * size_of(a.values.dtype);
  const i64 parts = a.joins != 0 ? queries * a.max_splits * (a.value_dim() + 2) : 0;
  return 4 * (queries * (a.score_dim() + 2 * i64(a.value_dim()) + 2 * a.chunk + 3) + parts) + a.chunk * right;
}

// Keys or values of positions as fp64; those of this step as the pages round them.
class Positions {
 public:
  Positions(const Attention& a, Values& values, const Tensor& pages, const Tensor& rows)
      : a_(a), pages_(pages), old_(values.read(pages)), new_(values.read(rows)) {
    for (double& value : new_) value = double(round_to(pages.dtype, float(value)));
  }

  std::span<const double> at(const StepHost& host, const AttentionBlock& block, i32 kv_head,
                             i32 position) const {
    const auto row_of = [&](const std::vector<double>& rows, i64 row) {
      return std::span(rows).subspan(size_t(row * pages_.last()), size_t(pages_.last()));
    };
    if (position < block.start) {
      const i32 page_size = pages_.size[2], page = host.pages(block.sequence)[position / page_size];
      return row_of(old_, (i64(page) * a_.kv_heads + kv_head) * page_size + position % page_size);
    }
    const i64 row = host.sequence(block.sequence)->row_begin + position - block.start;
    return row_of(new_, row * a_.kv_heads + kv_head);
  }

 private:
  const Attention& a_;
  const Tensor& pages_;
  std::vector<double> old_, new_;
};

// One row and head of one split, the maximum taken first.
struct RowSplit {
  double best = -3e38, total = 0;
  std::vector<double> mean;
};

RowSplit row_split(const Attention& a, const std::vector<double>& scores, const std::vector<double>& values) {
  RowSplit result;
  result.mean.assign(size_t(a.value_dim()), 0);
  for (double score : scores) result.best = max_or_nan(result.best, score);
  for (size_t p = 0; p < scores.size(); ++p) {
    const double weight = std::exp(scores[p] - result.best);
    result.total += weight;
    for (size_t i = 0; i < result.mean.size(); ++i)
      result.mean[i] += weight * values[p * result.mean.size() + i];
  }
  for (double& mean : result.mean) mean /= result.total > 0 ? result.total : 1;
  return result;
}

// The splits of a row and head as one.
RowSplit joined(const std::vector<RowSplit>& splits) {
  RowSplit all = splits[0];
  for (const RowSplit& split : splits) all.best = max_or_nan(all.best, split.best);
  all.total = 0, std::ranges::fill(all.mean, 0);
  for (const RowSplit& split : splits) {
    const double weight = std::exp(split.best - all.best) * split.total;
    all.total += weight;
    for (size_t i = 0; i < all.mean.size(); ++i) all.mean[i] += weight * split.mean[i];
  }
  for (double& mean : all.mean) mean /= all.total > 0 ? all.total : 1;
  return all;
}

double dot(std::span<const double> rows, size_t begin, std::span<const double> other) {
  return std::inner_product(other.begin(), other.end(), rows.begin() + long(begin), 0.0);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Attention>(args);
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  const Positions all_keys(a, values, a.keys, a.k), all_values(a, values, a.values, a.v);
  const auto q = values.read(a.q), latent = a.is_latent() ? values.read(a.latent) : std::vector<double>{};
  const auto bias = a.has_bias() ? values.read(a.bias) : std::vector<double>{};
  auto part = values.read(a.part), stats = values.read(a.stats);
  for (i32 row = 0; row < host.rows; ++row) {
    const AttentionBlock block = attention_block_of_row(host, device, a.cut(), row);
    for (i32 head = 0; head < a.heads; ++head) {
      std::vector<RowSplit> splits;
      const size_t query = size_t(row * a.heads + head), width = size_t(a.value_dim());
      for (i32 split = 0; split < block.splits; ++split) {
        const i32 kv_head = head / a.group(), first = block.first + split * block.split_size;
        const i32 position = device.position()[row];
        const i32 begin = a.window > 0 ? std::max(first, position - a.window + 1) : first;
        const i32 end = std::min({first + block.split_size, block.length, position + 1});
        std::vector<double> scores, seen;
        for (i32 p = begin; p < end; ++p) {
          const std::span key = all_keys.at(host, block, kv_head, p);
          const std::span value = all_values.at(host, block, kv_head, p);
          double score = dot(q, query * key.size(), key);
          if (!latent.empty()) score += dot(latent, query * width, value);
          score *= double(a.scale);
          const double cap = double(a.softcap);
          if (cap > 0) score = cap * std::tanh(score / cap);
          if (!bias.empty()) score += bias[size_t(head) * size_t(a.bias.last()) + size_t(p)];
          scores.push_back(score);
          seen.insert(seen.end(), value.begin(), value.end());
        }
        splits.push_back(row_split(a, scores, seen));
      }
      if (a.joins != 0) splits = {joined(splits)};
      for (size_t split = 0; split < splits.size(); ++split) {
        const size_t at = query * size_t(a.split_tiles()) + split;
        std::ranges::copy(splits[split].mean, part.begin() + long(at * width));
        stats[2 * at] = splits[split].best, stats[2 * at + 1] = splits[split].total;
      }
    }
  }
  values.write(a.part, part);
  values.write(a.stats, stats);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Attention>("attention", "causal attention of row blocks over splits of the KV range");
    op.infer = infer;
    op.axes = axes;
    op.configs = configs;
    op.chain_kernel = kernel;
    op.regions = regions;
    op.flops = flops;
    op.stream_bytes = stream_bytes;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.output = "part", .spreads_nan = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::attention
