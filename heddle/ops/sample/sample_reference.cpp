#include "heddle/ops/sample/sample_reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle {

std::vector<double> edited_scores(std::span<const double> logits, const StepHost& host,
                                  const StepDevice& device, i32 s, std::span<const double> edits,
                                  const std::byte* masks) {
  const StepSequence& options = *host.sequence(s);
  const double penalty = double(options.repetition_penalty);
  const bool by_planes = (options.edited & ScoreEdits::kByPlanes) != 0;
  const size_t slot = size_t(options.slot) * ScoreEdits::kPlanes, vocab = logits.size();
  const std::byte* const mask = masks + i64(options.slot) * ScoreEdits::mask_bytes(i32(vocab));
  std::vector<double> scores(logits.begin(), logits.end());
  for (size_t token = 0; token < vocab; ++token) {
    double& score = scores[token];
    if (by_planes) score += edits[(slot + ScoreEdits::kBias) * vocab + token];
    if (device.shape.vocab > 0 && device.seen(s)[token / 32] >> (token % 32) & 1)
      score = score < 0 ? score * penalty : score / penalty;
    if (by_planes) {
      const double count = edits[(slot + ScoreEdits::kCount) * vocab + token];
      if (count > 0) score -= double(options.frequency_penalty) * count + double(options.presence_penalty);
      if (double(device.draws()[s]) < -count) score = -INFINITY;
    }
    if ((options.edited & ScoreEdits::kByMask) != 0 && (u32(mask[token / 8]) >> (token % 8) & 1) == 0)
      score = -INFINITY;
  }
  return scores;
}

SliceParts slice_parts(std::span<const double> scores, i32 slice, double temperature) {
  constexpr size_t kSize = ScoreSlices::kSize, kBlock = ScoreSlices::kBlock, kBlocks = ScoreSlices::kBlocks;
  const size_t begin = size_t(slice) * kSize, count = std::min(kSize, scores.size() - begin);
  SliceParts parts{{}, std::vector<double>(kSize, -INFINITY), {}};
  for (size_t i = 0; i < count; ++i)
    parts.sorted[i] = scores[begin + i] < INFINITY ? scores[begin + i] : INFINITY;
  const auto best = std::max_element(parts.sorted.begin(), parts.sorted.end());
  const double top = *best;
  const double token = top > -INFINITY ? double(begin) + double(best - parts.sorted.begin()) : 0;
  std::sort(parts.sorted.begin(), parts.sorted.end(), std::greater<>());
  std::vector<double> weights(kSize);
  for (size_t i = 0; i < kSize; ++i)
    weights[i] =
        parts.sorted[i] > -INFINITY && temperature > 0 ? std::exp((parts.sorted[i] - top) / temperature) : 0;
  parts.best = {top, token, std::accumulate(weights.begin(), weights.end(), 0.0), 0};
  parts.blocks.resize(size_t(ScoreSlices::kPlanes) * kBlocks);
  for (size_t b = 0; b < kBlocks; ++b) {
    const double* of = &parts.sorted[b * kBlock];
    const auto finite = std::find(of, of + kBlock, -INFINITY) - of;
    const auto set = [&](ScoreSlices::Plane plane, double value) {
      parts.blocks[size_t(plane) * kBlocks + b] = value;
    };
    set(ScoreSlices::kFirst, of[0]);
    set(ScoreSlices::kLast, of[std::max<long>(finite, 1) - 1]);
    set(ScoreSlices::kWeight, std::accumulate(&weights[b * kBlock], &weights[b * kBlock] + kBlock, 0.0));
    set(ScoreSlices::kCount, double(finite));
  }
  return parts;
}

}  // namespace heddle
