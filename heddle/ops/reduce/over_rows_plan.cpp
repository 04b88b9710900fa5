#include "heddle/ops/reduce/over_rows_plan.h"

#include <fmt/format.h>

#include "heddle/ir/shape.h"
#include "heddle/ops/reduce/over_rows.h"

namespace heddle {
namespace {

constexpr i32 kRowsOfThread = 16;  // it takes them all,
constexpr i32 kWideRow = 64;       // if its neighbours read next to it

// False where words of eight elements would not begin at multiples of 16 bytes, in memory or in a line.
bool has_words(const Tensor& x, bool lines) {
  const i64 size = size_of(x.dtype);
  if (x.size[0] > 1 && x.stride[0] * size % 16 != 0) return false;
  if (lines) return i64(x.size[1]) * x.size[2] % 8 == 0;
  return x.size[2] % 8 == 0 && (x.size[1] == 1 || x.stride[1] * size % 16 == 0);
}

// Numbers of elements that a word of short lines has; 0 where they are not short, or do not lie end to end.
i32 short_vector(const Tensor& x, const RowsForm& form) {
  const i64 rows = x.size[1], columns = x.size[2], line = rows * columns;
  const bool is_dense = (rows == 1 || x.stride[1] == columns) && (x.size[0] == 1 || x.stride[0] == line);
  const i32 vector = (columns == 1 ? rows : columns) % 8 == 0 ? 8 : 1;
  // Others are as fast in registers, in which a thread has words of eight: on an H100, 2,097,152 x 64 in bf16 takes 117 us there and
  // 138 us this way.
  const i64 most = form.vector == 1 || !form.lines ? kShortBytes : columns == 1 ? 64 : 256;
  return is_dense && line * size_of(x.dtype) <= most ? vector : 0;
}

RowsForm form_of(const Tensor& x, i32 threads) {
  const i32 rows = x.size[1], columns = x.size[2];
  const bool is_dense = rows == 1 || x.stride[1] == columns;
  const bool takes_columns = has_words(x, false) && columns >= kWideRow && rows <= kRowsOfThread;
  for (const i32 vector : {8, 1})
    for (const bool lines : {true, false}) {
      if (lines && (!is_dense || takes_columns || over_rows::period(columns, vector) > threads)) continue;
      if (vector == 1 || has_words(x, lines)) return {threads, vector, lines, true, RowsForm::kMostGroups};
    }
  return {threads, 1, false, true, RowsForm::kMostGroups};
}

constexpr i32 kFirstWithClusters = 90;

// CTAs that go down the same columns and join what they have; 1 where a cluster of them would leave most of a GPU idle, or a thread
// with few rows.
i32 cluster_of(const Tensor& x, const RowsForm& form) {
  constexpr i32 kMost = 8, kEnough = 512, kFew = 256, kLeastRows = 16;
  if (form.lines || form.vector == 1) return 1;
  const i64 blocks = x.size[2] / form.vector / over_rows::kLeastTeam;
  i32 cluster = 2;
  while (cluster < kMost && blocks * cluster < kEnough) cluster *= 2;
  const i64 at_once = i64(cluster) * (form.threads / over_rows::kLeastTeam);
  return blocks * cluster < kFew || x.size[1] < kLeastRows * at_once ? 1 : cluster;
}

std::string misfit(const RowsWork& work) {
  for (const Tensor* tensor : {&work.x, &work.y})
    if (!is_wide_float(tensor->dtype))
      return fmt::format("{} has elements that are no floats", shape_text(*tensor));
  return "";
}

}  // namespace

// By default the words that a thread loads at once take 32 registers.
std::vector<OpConfig> over_rows_configs(const RowsWork& work) {
  const auto config = [](i64 threads, i64 words) {
    return OpConfig{{kKernelValue, 1}, {"threads", threads}, {"words", words}};
  };
  const i64 words = 16 / size_of(work.x.dtype);
  return {config(256, words), config(256, words / 2).reordering(), config(512, words / 2).reordering(),
          config(128, words).reordering()};
}

KernelPlan plan_over_rows(const RowsWork& work, const KernelTarget& target, const OpConfig& wanted) {
  KernelPlan made{.why_not = misfit(work), .file = "sm80"};
  if (!made.why_not.empty()) return made;
  const OpConfig config = wanted.values().empty() ? over_rows_configs(work).front() : wanted;
  const i32 groups = work.x.size[0], rows = work.x.size[1], columns = work.x.size[2];
  RowsForm form = form_of(work.x, i32(config.at("threads")));
  RowsCut cut = rows_cut(rows, columns, form);
  if (cut.parts > 1 && target.arch >= kFirstWithClusters && work.is_result)
    if (form.cluster = cluster_of(work.x, form); form.cluster > 1) cut = rows_cut(rows, columns, form);
  const i32 of_short = work.is_result ? short_vector(work.x, form) : 0;
  if (of_short > 0) form.vector = of_short, form.lines = false, cut.parts = 1;
  made.constants = OpConfig{{"threads", form.threads}, {"words", config.at("words")},
                            {"vector", form.vector},   {"lines", form.lines},
                            {"split", cut.parts > 1},  {"short", of_short > 0},
                            {"cluster", form.cluster}, {"kind", work.kind}};
  const auto add = [&](const char* name, i64 grid) {
    constexpr i64 kMostCtas = 0x7fffffff;
    if (grid > kMostCtas)
      made.why_not = fmt::format("it would have {} CTAs; a launch takes {}", grid, kMostCtas);
    made.launches.push_back({.name = name, .grid = u32(grid), .threads = u32(form.threads)});
  };
  add("Kernel", of_short > 0
                    ? ceil_div(groups, short_cut(rows, columns, of_short, size_of(work.x.dtype)).lines)
                    : rows_grid(groups, columns, form, cut));
  constexpr i32 kWord = 16;  // the first line begins inside of one
  if (of_short > 0) made.launches[0].shared_bytes = kShortBytes + kWord;
  if (form.cluster > 1) {
    made.launches[0].cluster = u32(form.cluster);
    made.launches[0].shared_bytes = i64(form.threads) * form.vector * i64(sizeof(float));
    return made;
  }
  if (cut.parts == 1) return made;
  const RowsForm last = parts_form(columns, form.threads);
  add("Finish", rows_grid(groups, columns, last, rows_cut(cut.parts, columns, last)));
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
    return target.kernels && misfit(work).empty() ? over_rows_configs(work) : std::vector<OpConfig>();
  };
}

}  // namespace heddle
