#include "heddle/ops/cross_entropy/cross_entropy.h"
#include "heddle/ops/cross_entropy/cross_entropy_examples.h"

namespace heddle::cross_entropy {

std::vector<Case> cases() {
  std::vector<Case> cases;
  each_loss_case([&](const Tensor& logits, const Tensor& target, const LossOptions& options) {
    const CrossEntropy args{.logits = logits,
                            .target = target,
                            .label_smoothing = options.label_smoothing,
                            .softcap = options.softcap,
                            .z_loss = options.z_loss};
    Case one = make_case(args, rounding_bound(DType::kF32, 16 + logits.last() / 64.0));
    one.prepare = [](std::byte* bytes, Values& values) { fill_targets(as<CrossEntropy>(bytes), values); };
    cases.push_back(one);
  });
  return cases;
}

}  // namespace heddle::cross_entropy
