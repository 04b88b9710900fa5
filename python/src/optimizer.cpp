#include "python/src/optimizer.h"

#include <vector>

#include "heddle/backend/cpu/adamw.h"
#include "heddle/backend/cuda/executors/adamw_list.h"
#include "heddle/base/dynamic_code.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

// (bf16 parameters, bf16 gradients, AdamwState), and (lr, beta1, beta2, eps, weight_decay, grad_scale).
AdamwStep step_of(const nb::tuple& kinds, const nb::tuple& numbers, int step) {
  const auto float_type = [&](size_t at) { return nb::cast<bool>(kinds[at]) ? DType::kBf16 : DType::kF32; };
  const auto number = [&](size_t at) { return nb::cast<float>(numbers[at]); };
  return {.param = float_type(0),
          .grad = float_type(1),
          .state = AdamwState(nb::cast<int>(kinds[2])),
          .lr = number(0),
          .beta1 = number(1),
          .beta2 = number(2),
          .eps = number(3),
          .weight_decay = number(4),
          .grad_scale = number(5),
          .step = step};
}

// Tensors are tuples of addresses and numbers, as AdamwTensor has them; heddle.optim has checked them.
void adamw(const nb::list& tensors, const nb::tuple& kinds, const nb::tuple& numbers, int step, int threads) {
  std::vector<AdamwTensor> all;
  all.reserve(nb::len(tensors));
  for (const nb::handle each : tensors) {
    const auto tuple = nb::cast<nb::tuple>(each);
    const auto address = [&](size_t at) { return reinterpret_cast<u8*>(nb::cast<uintptr_t>(tuple[at])); };
    all.push_back({.param = address(0),
                   .residual = address(1),
                   .grad = address(2),
                   .m = address(3),
                   .v = address(4),
                   .m_scale = reinterpret_cast<float*>(address(5)),
                   .v_scale = reinterpret_cast<float*>(address(6)),
                   .first = nb::cast<i64>(tuple[7]),
                   .count = nb::cast<i64>(tuple[8]),
                   .seed = nb::cast<u32>(tuple[9])});
  }
  const AdamwStep factors = step_of(kinds, numbers, step);
  const nb::gil_scoped_release others;
  adamw_step(all, factors, threads);
}

// `place`: (device, stream). `list`: (rows, count, chunks, codes), of which rows and codes are addresses on the device; rows are
// [count, 11] numbers, as AdamwRow has them.
void adamw_on_gpu(const nb::tuple& place, const nb::tuple& list, const nb::tuple& kinds,
                  const nb::tuple& numbers, int step) {
  const cuda::AdamwTensors tensors{.rows = reinterpret_cast<const AdamwRow*>(nb::cast<uintptr_t>(list[0])),
                                   .count = nb::cast<int>(list[1]),
                                   .chunks = nb::cast<i64>(list[2]),
                                   .codes = reinterpret_cast<const float*>(nb::cast<uintptr_t>(list[3]))};
  const AdamwStep factors = step_of(kinds, numbers, step);
  const auto device = nb::cast<int>(place[0]);
  void* const stream = reinterpret_cast<void*>(nb::cast<uintptr_t>(place[1]));
  const nb::gil_scoped_release others;
  cuda::adamw_step(tensors, factors, device, stream);
}

// The values of the dynamic code and the middles between them.
nb::tuple dynamic_code(bool is_signed) {
  const DynamicCode& code = DynamicCode::of(is_signed);
  nb::list values, middles;
  for (const float value : code.values) values.append(value);
  for (const float middle : code.middles) middles.append(middle);
  return nb::make_tuple(values, middles);
}

}  // namespace

void add_optimizer(nb::module_& module) {
  module.def("adamw", &adamw);
  module.def("adamw_on_gpu", &adamw_on_gpu);
  module.attr("adamw_chunk") = kAdamwBlock * kAdamwChunk;
  module.def("dynamic_code", &dynamic_code);
}

}  // namespace heddle::python
