#include "heddle/ops/experts/route.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "heddle/ir/rules.h"

namespace heddle::route {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Route>(args);
  require_rank("route", "logits", a.logits, 2);
  require_float("route", "logits", a.logits);
  const i32 rows = a.logits.size[0], experts = a.logits.last();
  for (const auto& [name, tensor] : {std::pair("bias", &a.bias), {"factors", &a.factors}}) {
    if (tensor->rank == 0) continue;
    require_shape("route", name, *tensor, {experts});
    require_float("route", name, *tensor);
  }
  require(
      !a.sparse_mixer || !(a.sigmoid || a.normalise || a.groups > 1 || a.bias.rank > 0),
      "[route] sparse_mixer = {} with sigmoid, normalise, groups or bias; its shares come of logits alone",
      a.sparse_mixer);
  require(a.choice.rank == 2 && a.choice.last() >= 1 && a.choice.last() <= experts,
          "[route] choice is {}; give it i32 [{}, experts that a token takes], 1 to {} of these",
          shape_text(a.choice), rows, experts);
  require(a.groups >= 1 && experts % a.groups == 0, "[route] {} experts in {} groups of one size", experts,
          a.groups);
  const i32 size = experts / a.groups;
  require(a.groups_kept >= 1 && a.groups_kept <= a.groups && a.groups_kept * size >= a.choice.last(),
          "[route] {} of {} groups of {} experts are kept; {} are to be chosen", a.groups_kept, a.groups,
          size, a.choice.last());
  require(a.scores_of_group >= 1 && a.scores_of_group <= std::min(2, size),
          "[route] scores_of_group = {}; must be 1 or 2, and at most the {} experts of a group",
          a.scores_of_group, size);
  set_output("route", "choice", a.choice, DType::kI32, {rows, a.choice.last()});
  set_output("route", "share", a.share, DType::kF32, {rows, a.choice.last()});
  require_dtype("route", "share", a.share, DType::kF32);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const i32 rows = as<Route>(args).logits.size[0];
  return {{.dim = "T", .extent = rows, .preferred = 16}};
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<Route>(args);
  return double(t[1] - t[0]) * a.logits.last() * (24 + a.choice.last());
}

std::vector<double> scores_of(const Route& a, const double* logits, size_t experts) {
  std::vector<double> scores(experts);
  if (a.sparse_mixer) return {logits, logits + experts};
  const double top = *std::max_element(logits, logits + experts);
  double sum = 0;
  for (size_t e = 0; e < experts; ++e) sum += std::exp(logits[e] - top);
  for (size_t e = 0; e < experts; ++e)
    scores[e] = a.sigmoid ? 1 / (1 + std::exp(-logits[e])) : std::exp(logits[e] - top) / sum;
  return scores;
}

// Indices by falling value, the first of equals first; NaN comes before all numbers.
std::vector<size_t> falling(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto is_before = [](double one, double other) { return !(one <= other) && other == other; };
  std::ranges::stable_sort(order, is_before, [&](size_t i) { return values[i]; });
  return order;
}

void drop_groups(const Route& a, std::vector<double>& left) {
  const size_t groups = size_t(a.groups), size = left.size() / groups;
  std::vector<double> of_group(groups);
  for (size_t g = 0; g < groups; ++g) {
    const std::vector<double> group(left.begin() + long(g * size), left.begin() + long((g + 1) * size));
    const auto order = falling(group);
    for (i32 n = 0; n < a.scores_of_group; ++n) of_group[g] += group[order[size_t(n)]];
  }
  const auto order = falling(of_group);
  for (size_t n = size_t(a.groups_kept); n < groups; ++n)
    std::fill_n(left.begin() + long(order[n] * size), size, -INFINITY);
}

// The share of the expert that is chosen next, as sparse_mixer has it. `order`: of all experts, the best first.
double mixed_share(const Route& a, const std::vector<double>& scores, const std::vector<size_t>& order,
                   size_t n) {
  const double best = scores[order[n]];
  double sum = 0;
  for (size_t m = n; m < order.size(); ++m) {
    const double score = scores[order[m]], distance = (best - score) / std::max(std::abs(score), best);
    sum += distance > double(a.threshold) ? 0 : std::exp(score - best);
  }
  return 1 / sum;
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Route>(args);
  const auto logits = values.read(a.logits);
  const auto bias = a.bias.exists() ? values.read(a.bias) : std::vector<double>(size_t(a.logits.last()));
  const auto factors =
      a.factors.exists() ? values.read(a.factors) : std::vector<double>(size_t(a.logits.last()), 1.0);
  const size_t experts = bias.size(), taken = size_t(a.choice.last());
  std::vector<double> choice, share;
  for (size_t row = 0; row < logits.size() / experts; ++row) {
    const auto scores = scores_of(a, &logits[row * experts], experts);
    std::vector<double> left(experts);
    for (size_t e = 0; e < experts; ++e) left[e] = scores[e] + bias[e];
    drop_groups(a, left);
    const auto order = falling(left);
    double sum = 0;
    for (size_t n = 0; n < taken; ++n) sum += scores[order[n]];
    for (size_t n = 0; n < taken; ++n) {
      choice.push_back(double(order[n]));
      const double part =
          a.sparse_mixer ? mixed_share(a, scores, order, n) : scores[order[n]] / (a.normalise ? sum : 1);
      share.push_back(part * double(a.scale) * factors[order[n]]);
    }
  }
  values.write(a.choice, choice);
  values.write(a.share, share);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Route>("route", "which experts a token takes, and their shares");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.scratch = [](const std::byte* args, const TileCoord&) {
      const auto& a = as<Route>(args);
      return 4 *
             (3 * i64(a.logits.last()) + 2 * i64(a.groups) + a.choice.last() * (a.factors.exists() ? 2 : 1));
    };
    op.reference = reference;
    op.cases = cases;
    op.traits = {.output = "choice"};
    return op;
  }();
  return spec;
}

}  // namespace heddle::route
