#include "heddle/ops/reduce/over_rows_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "heddle/ir/shape.h"
#include "heddle/ops/reduce/over_rows.h"

namespace heddle {
namespace {

constexpr i32 kRowsOfThread = 16;  // it takes them all,
constexpr i32 kWideRow = 64;       // if its neighbours read next to it
constexpr i32 kUsualThreads = 256;
constexpr i32 kMostOfFew = 512;  // rows, where a matrix is alone
constexpr i32 kMostOfSome = 8192;

// Numbers of elements that a word of short lines has; 0 where they are not short.
i32 short_vector(const Tensor& x, const RowsForm& form) {
  const i64 rows = x.size[1], columns = x.size[2];
  const i32 vector = (columns == 1 ? rows : columns) % 8 == 0 ? 8 : 1;
  // Others are as fast in registers, in which a thread has words of eight: on an H100, 2,097,152 x 64 in bf16 takes 117 us there and
  // 138 us this way.
  const i64 most = form.vector == 1 || !form.lines ? kShortBytes : columns == 1 ? 64 : 256;
  return rows * columns * size_of(x.dtype) <= most ? vector : 0;
}

// Follows from sizes alone, so that the order of a sum does not depend on strides.
RowsForm form_of(const Tensor& x, i32 threads) {
  const i32 longest =
      threads == over_rows::kLargeCta ? kUsualThreads : threads;  // large CTAs go down columns alone
  const i32 rows = x.size[1], columns = x.size[2];
  const bool takes_columns = columns % 8 == 0 && columns >= kWideRow && rows <= kRowsOfThread;
  for (const i32 vector : {8, 1})
    for (const bool lines : {true, false}) {
      if (lines && (takes_columns || over_rows::period(columns, vector) > longest)) continue;
      if ((lines ? i64(rows) * columns : columns) % vector == 0)
        return {threads, vector, lines, true, RowsForm::kMostGroups};
    }
  return {threads, 1, false, true, RowsForm::kMostGroups};
}

RowsGaps gaps_of(const Tensor& x, const RowsForm& form, bool is_short) {
  const auto is_dense = [&](int d, i64 stride) { return x.size[d] == 1 || x.stride[d] == stride; };
  const auto has_words = [&](int d) { return x.size[d] == 1 || x.stride[d] * size_of(x.dtype) % 16 == 0; };
  const i64 columns = x.size[2];
  const bool rows_dense = is_dense(1, columns);
  if (is_short) return rows_dense && is_dense(0, x.size[1] * columns) ? kNoGaps : kAnyGaps;
  if (form.vector > 1 && !has_words(0)) return kAnyGaps;
  if (form.lines) {
    if (rows_dense) return kNoGaps;
    return form.vector == 1 || (columns % form.vector == 0 && has_words(1)) ? kWordGaps : kAnyGaps;
  }
  return form.vector == 1 || has_words(1) ? kNoGaps : kAnyGaps;
}

constexpr i32 kFirstWithClusters = 90;

// CTAs that go down the same columns and join what they have; 1 where a cluster of them would leave most of a GPU idle, or a thread
// with few rows. Large CTAs are one wave, in clusters that are as small as they can be.
i32 cluster_of(const Tensor& x, const RowsForm& form) {
  using over_rows::kProcessors;
  constexpr i32 kMost = 8, kEnough = 512, kFew = 256;
  if (form.lines || form.vector == 1) return 1;
  const bool is_large = form.threads == over_rows::kLargeCta;
  const i32 words = x.size[2] / form.vector, team = cluster_team(words, form.threads);
  const i64 blocks = is_large ? ceil_div(words, team) : words / team;
  i32 cluster = 2;
  while (cluster < kMost && (is_large ? 2 * blocks * cluster <= kProcessors : blocks * cluster < kEnough))
    cluster *= 2;
  const i64 ctas = blocks * cluster, at_once = i64(cluster) * (form.threads / team);
  const bool fits = is_large ? ctas <= kProcessors && 2 * ctas > kProcessors : ctas >= kFew;
  const i64 least_rows = is_large ? 128 : 16;  // a thread has
  return fits && x.size[1] >= least_rows * at_once ? cluster : 1;
}

bool has_clusters(const RowsWork& work, const KernelTarget& target) {
  return target.arch >= kFirstWithClusters && work.is_result;
}
// Some rows of a matrix alone are read in a few microseconds by clusters that leave most of a GPU idle; two launches take longer, and so
// does one CTA. Sums of parts (kit/rows/parts.h) are such.
bool takes_clusters(const RowsWork& work, const KernelTarget& target) {
  const i32 rows = work.x.size[1], columns = work.x.size[2];
  return work.is_alone && has_clusters(work, target) && columns % 8 == 0 && columns >= kWideRow &&
         rows > kMostOfFew && rows <= kMostOfSome;
}
// True where large CTAs suit.
bool takes_large(const RowsWork& work, const KernelTarget& target) {
  return has_clusters(work, target) && cluster_of(work.x, form_of(work.x, over_rows::kLargeCta)) > 1;
}

// True where small CTAs suit: on an H200, sums down 8 x 4,096 x 4,096 in bf16 take 79 us with 256 threads, and 71 with 128.
bool takes_small(const RowsWork& work, const KernelTarget& target) {
  return target.fast_memory && !work.is_alone && size_of(work.x.dtype) == 2 &&
         !form_of(work.x, kUsualThreads).lines;
}

std::string misfit(const RowsWork& work) {
  for (const Tensor* tensor : {&work.x, &work.y})
    if (!is_wide_float(tensor->dtype))
      return fmt::format("{} has elements that are no floats", shape_text(*tensor));
  return "";
}

// The words that a thread loads at once by default take 32 registers; in the few clusters of a matrix alone 16 are faster.
i64 usual_words(const RowsWork& work, const KernelTarget& target) {
  const RowsForm form = form_of(work.x, kUsualThreads);
  const bool is_cut = rows_cut(work.x.size[1], work.x.size[2], form).parts > 1;
  const bool in_clusters = is_cut && has_clusters(work, target) && cluster_of(work.x, form) > 1;
  return (in_clusters && work.is_alone ? 8 : 16) / size_of(work.x.dtype);
}

}  // namespace

std::vector<OpConfig> over_rows_configs(const RowsWork& work, const KernelTarget& target) {
  const auto config = [](i64 threads, i64 words) {
    return OpConfig{{kKernelValue, 1}, {"threads", threads}, {"words", words}};
  };
  const i64 words = usual_words(work, target), most = 16 / size_of(work.x.dtype);
  std::vector<OpConfig> all;
  if (takes_large(work, target)) all.push_back(config(over_rows::kLargeCta, most / 2));
  std::vector<std::pair<i64, i64>> others{
      {kUsualThreads, words}, {kUsualThreads, words == most ? most / 2 : most}, {512, most / 2}, {128, most}};
  if (takes_small(work, target)) std::ranges::rotate(others, others.end() - 1);
  for (const auto& [threads, held] : others)
    all.push_back(all.empty() ? config(threads, held) : config(threads, held).reordering());
  return all;
}

void add_launch(KernelPlan& plan, const char* name, i64 grid, i32 threads) {
  constexpr i64 kMostCtas = 0x7fffffff;
  if (grid > kMostCtas)
    plan.why_not = fmt::format("it would have {} CTAs; a launch takes {}", grid, kMostCtas);
  plan.launches.push_back({.name = name, .grid = u32(grid), .threads = u32(threads)});
}

KernelPlan plan_over_rows(const RowsWork& work, const KernelTarget& target, const OpConfig& wanted) {
  KernelPlan made{.why_not = misfit(work), .file = "sm80"};
  if (!made.why_not.empty()) return made;
  const OpConfig config = wanted.values().empty() ? over_rows_configs(work, target).front() : wanted;
  const i32 groups = work.x.size[0], rows = work.x.size[1], columns = work.x.size[2];
  RowsForm form = form_of(work.x, i32(config.at("threads")));
  const bool is_few = work.is_alone && !form.lines && rows <= kMostOfFew;
  if (is_few) form = form.of_few_rows();
  RowsCut cut = rows_cut(rows, columns, form);
  if ((cut.parts > 1 || form.threads == over_rows::kLargeCta) && has_clusters(work, target))
    if (form.cluster = cluster_of(work.x, form); form.cluster > 1) cut = rows_cut(rows, columns, form);
  if ((cut.parts > 1 || form.lines) && form.cluster == 1 && takes_clusters(work, target)) {
    form.vector = 8, form.lines = false, form.cluster = 8;
    cut = rows_cut(rows, columns, form);
  }
  const i32 of_short = work.is_result ? short_vector(work.x, form) : 0;
  if (of_short > 0) form.vector = of_short, form.lines = false, cut.parts = 1;
  made.constants = OpConfig{
      {"threads", form.threads}, {"words", config.at("words")}, {"vector", form.vector},
      {"lines", form.lines},     {"split", cut.parts > 1},      {"short", of_short > 0},
      {"few", is_few},           {"cluster", form.cluster},     {"gaps", gaps_of(work.x, form, of_short > 0)},
      {"kind", work.kind}};
  add_launch(made, "Kernel",
             of_short > 0 ? ceil_div(groups, short_cut(rows, columns, of_short, size_of(work.x.dtype)).lines)
                          : rows_grid(groups, columns, form, cut),
             form.threads);
  constexpr i32 kWord = 16;  // the first line begins inside of one
  if (of_short > 0) made.launches[0].shared_bytes = kShortBytes + kWord;
  if (form.cluster > 1) {
    made.launches[0].cluster = u32(form.cluster);
    made.launches[0].shared_bytes = i64(form.threads) * form.vector * i64(sizeof(float));
    return made;
  }
  if (cut.parts == 1) return made;
  const RowsForm last = parts_form(columns, form.threads);
  add_launch(made, "Finish", rows_grid(groups, columns, last, rows_cut(cut.parts, columns, last)),
             form.threads);
  made.workspace_bytes = i64(groups) * cut.parts * columns * work.state_bytes;
  return made;
}

void set_over_rows_kernel(OpSpec& op, RowsWorkRule rule) {
  op.kernel = [rule](const std::byte* args, const KernelTarget& target, const OpConfig& config) {
    constexpr i32 kFirstArch = 80;
    if (target.arch < kFirstArch)
      return KernelPlan{.why_not = "it is written for compute capability 8.0 and later"};
    return plan_over_rows(rule(args), target, config);
  };
  op.configs = [rule](const std::byte* args, const TilingTarget& target) {
    const RowsWork work = rule(args);
    return target.kernels && misfit(work).empty() ? over_rows_configs(work, *target.kernels)
                                                  : std::vector<OpConfig>();
  };
}

}  // namespace heddle
