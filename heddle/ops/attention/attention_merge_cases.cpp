#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/attention/attention_merge.h"

namespace heddle::attention_merge {
namespace {

// Totals are positive; a split in which a row sees nothing has a maximum far below and sums of zero; what a dead
// split holds is never read (NaN here).
void fill_stats(const StepExample& step, std::byte* bytes, Values& values) {
  auto& a = as<AttentionMerge>(bytes);
  const StepHost& host = step.fill_host(values.bytes(a.step.buffer));
  const StepDevice& device = step.fill_state(values.bytes(a.state.buffer));
  auto stats = values.read(a.stats), part = values.read(a.part);
  const size_t each = size_t(a.part.size[1] * a.part.size[2]), head_dim = size_t(a.part.size[3]);
  for (size_t s = 0; s < stats.size() / 2; ++s) {
    const auto block = attention_block_of_row(host, device, a.cut(), i32(s / each));
    const i32 split = i32(s % size_t(a.part.size[2]));
    const bool dead = split >= block.splits, blind = split > 0 && s % 7 == 3;
    stats[2 * s] = dead ? NAN : blind ? -3e38 : 4 * stats[2 * s];
    stats[2 * s + 1] = dead ? NAN : blind ? 0 : 1 + std::abs(stats[2 * s + 1]);
    for (size_t i = 0; i < head_dim && (dead || blind); ++i) part[s * head_dim + i] = dead ? NAN : 0;
  }
  values.write(a.stats, stats);
  values.write(a.part, part);
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  const StepExample decode{{{.start = 70, .rows = 1}}}, mixed{{{5, 11}, {66, 1}, {0, 3}}};
  for (const StepExample& step : {decode, mixed})
    for (i32 splits : {1, 2, 9})
      for (auto [heads, head_dim] : {std::pair{1, 1}, {3, 24}, {9, 256}, {2, 65}})
        for (auto [parts, type] : {std::pair{DType::kF32, DType::kF32},
                                   {DType::kF32, DType::kBf16},
                                   {DType::kF32, DType::kF16},
                                   {DType::kBf16, DType::kF32},
                                   {DType::kBf16, DType::kBf16},
                                   {DType::kF16, DType::kF16}}) {
          AttentionMerge args{.step = step.host(), .state = step.state()};
          args.part = input(parts, {step.rows(), heads, splits, head_dim});
          args.stats = input(DType::kF32, {step.rows(), heads, splits, 2});
          args.y = input(type, {step.rows(), heads * head_dim});
          args.block_rows = 4, args.max_blocks = 8, args.max_splits = splits, args.split_unit = 8;
          args.window = splits == 2 ? 30 : 0;
          Case one = make_case(args, rounding_bound(type, 16));
          one.prepare = [step](std::byte* bytes, Values& values) { fill_stats(step, bytes, values); };
          cases.push_back(one);
        }
  return cases;
}

}  // namespace heddle::attention_merge
