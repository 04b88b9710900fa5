#include <array>
#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/attention/attention_sink.h"

namespace heddle::attention_sink {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, heads, dim] : {std::array{1, 1, 1}, {1, 3, 24}, {19, 9, 64}, {5, 2, 65}}) {
      AttentionSink args{.sinks = input(DType::kF32, {heads}), .part = input(type, {rows, heads, 1, dim})};
      args.stats = input(DType::kF32, {rows, heads, 1, 2});
      args.y = input(type, {rows, heads, 1, dim});
      args.new_stats = input(DType::kF32, {rows, heads, 1, 2});
      Case one = make_case(args, rounding_bound(type, 16));
      // A row that sees nothing of the first split has a maximum far below and a total of 0.
      one.prepare = [](std::byte* bytes, Values& values) {
        const auto& a = as<AttentionSink>(bytes);
        auto stats = values.read(a.stats);
        for (size_t i = 0; i < stats.size() / 2; ++i) {
          const bool blind = i % 7 == 3;
          stats[2 * i] = blind ? -3e38 : 3 * stats[2 * i];
          stats[2 * i + 1] = blind ? 0 : 1 + std::abs(stats[2 * i + 1]);
        }
        values.write(a.stats, stats);
      };
      cases.push_back(one);
    }
  return cases;
}

}  // namespace heddle::attention_sink
