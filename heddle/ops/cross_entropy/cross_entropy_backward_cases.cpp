#include "heddle/ops/cross_entropy/cross_entropy_backward.h"
#include "heddle/ops/cross_entropy/cross_entropy_examples.h"

namespace heddle::cross_entropy_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  each_loss_case([&](const Tensor& logits, const Tensor& target, const LossOptions& options) {
    const i32 rows = logits.size[0];
    CrossEntropyBackward args{.logits = logits,
                              .target = target,
                              .lse = input(DType::kF32, {rows}),
                              .dloss = input(DType::kF32, {rows}),
                              .label_smoothing = options.label_smoothing,
                              .softcap = options.softcap,
                              .z_loss = options.z_loss};
    if (target.dtype == DType::kI32) args.dlse = input(DType::kF32, {rows});
    Case one = make_case(args, unit_bound(logits.dtype, 32));
    one.prepare = [](std::byte* bytes, Values& values) {
      fill_targets(as<CrossEntropyBackward>(bytes), values);
    };
    cases.push_back(one);
  });
  return cases;
}

}  // namespace heddle::cross_entropy_backward
