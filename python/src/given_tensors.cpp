#include "python/src/given_tensors.h"

#include <utility>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/ir/executor/executor.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

MemorySpace& space_of_gpu(i32 device) {
  for (const Backend* backend : all_backends())
    for (const ExecutorSpec& executor : backend->executors)
      if (executor.space) return executor.space(device);
  fail(ErrorCode::kUnsupported, "[cuda] this build has no backend for GPU {}", device);
}

CallerTensor given_tensor(const Argument& argument, nb::handle object, Kept& kept) {
  const Kind* kind = kind_of(object.ptr());
  require(kind != nullptr, "[{}] {} is a {}; must be a tensor", argument.op, argument.name,
          type_name(object.ptr()));
  require(
      kind->is_exact,
      "[{}] {} is a {}, which may be a part of a tensor, or codes of one; must be a whole tensor in memory "
      "(full_tensor() makes one of a DTensor)",
      argument.op, argument.name, type_name(object.ptr()));
  const View view = kind->read(argument, object.ptr(), kept);
  CallerTensor made{.name = std::string(argument.name),
                    .dtype = view.dtype,
                    .shape = {view.size.begin(), view.size.end()},
                    .strides = {view.stride.begin(), view.stride.end()},
                    .data = static_cast<const std::byte*>(view.data)};
  for (const int64_t stride : made.strides)
    require(stride >= 0, "[{}] {} has the stride {}; strides must not be negative", argument.op,
            argument.name, stride);
  if (view.place.kind == MemoryPlace::Kind::kGpu) made.space = &space_of_gpu(view.place.device);
  return made;
}

}  // namespace

std::shared_ptr<CallerTensors> given_tensors(nb::handle pairs, const std::string& where, Kept& kept) {
  std::vector<CallerTensor> tensors;
  for (const nb::handle pair : pairs) {
    const nb::tuple both = nb::cast<nb::tuple>(pair);
    const std::string name = text_of(both[0].ptr());
    tensors.push_back(given_tensor({where, name}, both[1], kept));
  }
  return std::make_shared<CallerTensors>(std::move(tensors), where);
}

}  // namespace heddle::python
