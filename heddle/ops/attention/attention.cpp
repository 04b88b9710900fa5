#include "heddle/ops/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "heddle/ir/rules.h"

namespace heddle {

std::vector<Case> attention_cases();

namespace {

void require_columns(const Attention& a, const char* name, i32 column, i32 heads) {
  require(column >= 0 && i64(column) + i64(heads) * a.head_dim <= a.qkv.last(),
          "[attention] {} = {}, qkv is {}; {} heads of {} elements from there must lie in qkv", name, column,
          shape_text(a.qkv), heads, a.head_dim);
}

void require_cut(const Attention& a) {
  require(a.block_rows > 0 && a.max_blocks > 0 && a.max_splits > 0 && a.split_unit > 0,
          "[attention] block_rows = {}, max_blocks = {}, max_splits = {}, split_unit = {}; must be positive",
          a.block_rows, a.max_blocks, a.max_splits, a.split_unit);
  require(a.window >= 0 && a.softcap >= 0,
          "[attention] window = {}, softcap = {}; must be positive, or 0 for none", a.window, a.softcap);
}

void infer(std::byte* args) {
  auto& a = as<Attention>(args);
  require_record("attention", "step", a.step);
  require_record("attention", "state", a.state);
  require_rank("attention", "qkv", a.qkv, 2);
  require_float("attention", "qkv", a.qkv);
  require(
      a.kv_heads > 0 && a.heads > 0 && a.heads % a.kv_heads == 0 && a.head_dim > 0,
      "[attention] heads = {}, kv_heads = {}, head_dim = {}; heads must be a positive multiple of kv_heads",
      a.heads, a.kv_heads, a.head_dim);
  require_columns(a, "the first query column", 0, a.heads);
  require_columns(a, "key_column", a.key_column, a.kv_heads);
  require_columns(a, "value_column", a.value_column, a.kv_heads);
  require_rank("attention", "keys", a.keys, 4);
  require_float("attention", "keys", a.keys);
  const std::vector<i32> pages = {a.keys.size[0], a.kv_heads, a.keys.size[2], a.head_dim};
  require_shape("attention", "keys", a.keys, pages);
  require_shape("attention", "values", a.values, pages);
  require_float("attention", "values", a.values);
  require_cut(a);
  set_output("attention", "part", a.part, DType::kF32, {a.qkv.size[0], a.heads, a.max_splits, a.head_dim});
  set_output("attention", "stats", a.stats, DType::kF32, {a.qkv.size[0], a.heads, a.max_splits, 2});
  require_dtype("attention", "part", a.part, DType::kF32);
  require_dtype("attention", "stats", a.stats, DType::kF32);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Attention>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.kv_heads},
          {.kind = TileAxis::Kind::kIndex, .extent = a.max_blocks},
          {.kind = TileAxis::Kind::kIndex, .extent = a.max_splits}};
}

// Which rows a tile handles follows from the step record; its heads and its split are its own.
void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<Attention>(args);
  const i32 group = a.heads / a.kv_heads, rows = a.qkv.size[0];
  out.push_back(whole(a.step, Access::kRead));
  out.push_back(whole(a.state, Access::kRead));
  for (auto [column, heads] : {std::pair{t[0] * group * a.head_dim, group},
                               {a.key_column + t[0] * a.head_dim, 1},
                               {a.value_column + t[0] * a.head_dim, 1}})
    out.push_back(part_of(a.qkv, Access::kRead, {{0, rows}, {column, column + heads * a.head_dim}}));
  for (const Tensor* pages : {&a.keys, &a.values})
    out.push_back(part_of(*pages, Access::kRead,
                          {{0, pages->size[0]}, {t[0], t[0] + 1}, {0, pages->size[2]}, {0, a.head_dim}}));
  for (const Tensor* made : {&a.part, &a.stats}) {
    out.push_back(
        part_of(*made, Access::kWrite,
                {{0, rows}, {t[0] * group, (t[0] + 1) * group}, {t[2], t[2] + 1}, {0, made->last()}}));
    out.back().indexed = true;
  }
}

double flops(const std::byte* args, const TileCoord&) {
  const auto& a = as<Attention>(args);
  const i32 group = a.heads / a.kv_heads;
  return 4.0 * a.split_unit * a.head_dim * group * a.block_rows;
}

i64 scratch(const std::byte* args, const TileCoord&) {
  const auto& a = as<Attention>(args);
  constexpr i64 kChunk = 64;  // as in the body
  const i64 queries = i64(a.heads / a.kv_heads) * a.block_rows;
  const i64 right = kChunk * a.head_dim * (size_of(a.keys.dtype) + size_of(a.values.dtype));
  return 4 * queries * (3 * i64(a.head_dim) + 2 * kChunk + 3) + right;
}

// Keys or values of one position as fp64.
class Positions {
 public:
  Positions(const Attention& a, Values& values, const Tensor& pages, i32 column)
      : a_(a), pages_(pages), column_(column), old_(values.read(pages)), qkv_(values.read(a.qkv)) {}

  double at(const StepHost& host, const AttentionBlock& block, i32 kv_head, i32 position, i32 i) const {
    if (position < block.start) {
      const i32 page_size = pages_.size[2], page = host.pages(block.sequence)[position / page_size];
      const i64 slot = (i64(page) * a_.kv_heads + kv_head) * page_size + position % page_size;
      return old_[size_t(slot * a_.head_dim + i)];
    }
    const i64 row = host.sequence(block.sequence)->row_begin + position - block.start;
    const double value = qkv_[size_t(row * a_.qkv.last() + column_ + kv_head * a_.head_dim + i)];
    return double(round_to(pages_.dtype, float(value)));
  }

 private:
  const Attention& a_;
  const Tensor& pages_;
  i32 column_;
  std::vector<double> old_, qkv_;
};

// One row and head of one split, the maximum taken first.
struct RowSplit {
  double best = -3e38, total = 0;
  std::vector<double> sum;
};

RowSplit row_split(const Attention& a, const std::vector<double>& scores, const std::vector<double>& values) {
  RowSplit result;
  result.sum.assign(size_t(a.head_dim), 0);
  for (double score : scores) result.best = std::max(result.best, score);
  for (size_t p = 0; p < scores.size(); ++p) {
    const double weight = std::exp(scores[p] - result.best);
    result.total += weight;
    for (size_t i = 0; i < result.sum.size(); ++i)
      result.sum[i] += weight * values[p * result.sum.size() + i];
  }
  return result;
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Attention>(args);
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  const Positions keys(a, values, a.keys, a.key_column), old_values(a, values, a.values, a.value_column);
  auto qkv = values.read(a.qkv), part = values.read(a.part), stats = values.read(a.stats);
  for (i32 row = 0; row < host.rows; ++row) {
    const AttentionBlock block = attention_block_of_row(host, device, a.cut(), row);
    for (i32 head = 0; head < a.heads; ++head)
      for (i32 split = 0; split < block.splits; ++split) {
        const i32 kv_head = head / (a.heads / a.kv_heads), first = block.first + split * block.split_size;
        const i32 position = device.position()[row];
        const i32 begin = a.window > 0 ? std::max(first, position - a.window + 1) : first;
        const i32 end = std::min({first + block.split_size, block.length, position + 1});
        std::vector<double> scores, seen;
        for (i32 p = begin; p < end; ++p) {
          double score = 0;
          for (i32 i = 0; i < a.head_dim; ++i) {
            score += qkv[size_t(row) * size_t(a.qkv.last()) + size_t(head * a.head_dim + i)] *
                     keys.at(host, block, kv_head, p, i);
            seen.push_back(old_values.at(host, block, kv_head, p, i));
          }
          score *= double(a.scale);
          const double cap = double(a.softcap);
          scores.push_back(cap > 0 ? cap * std::tanh(score / cap) : score);
        }
        const RowSplit result = row_split(a, scores, seen);
        const size_t at = size_t((row * a.heads + head) * a.max_splits + split);
        std::copy(result.sum.begin(), result.sum.end(), part.begin() + long(at) * a.head_dim);
        stats[2 * at] = result.best, stats[2 * at + 1] = result.total;
      }
  }
  values.write(a.part, part);
  values.write(a.stats, stats);
}

}  // namespace

const OpSpec& attention_op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Attention>("attention", "causal attention of row blocks over splits of the KV range");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = attention_cases;
    op.traits = {.streams_pages = true, .output = "part"};
    return op;
  }();
  return spec;
}

}  // namespace heddle
