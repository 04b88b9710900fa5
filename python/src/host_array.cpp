#include "python/src/host_array.h"

#include <string_view>

#include "heddle/base/types.h"
#include "python/src/exchange.h"

namespace heddle::python {
namespace {

template <class Managed>
struct Shared {
  Managed managed;
  SharedFloats numbers;
  i64 shape[2], strides[2];
};

template <class Managed>
void release(Managed* managed) {
  delete static_cast<Shared<Managed>*>(managed->manager_ctx);
}

// A capsule whose tensor was taken has another name.
template <class Managed>
PyObject* capsule(const SharedFloats& numbers, size_t columns, Managed managed, const char* name) {
  const i64 width = i64(columns), rows = width ? i64(numbers->size()) / width : 0;
  auto shared =
      std::make_unique<Shared<Managed>>(Shared<Managed>{managed, numbers, {rows, width}, {width, 1}});
  shared->managed.manager_ctx = shared.get();
  shared->managed.deleter = release<Managed>;
  shared->managed.dl_tensor = {.data = numbers->data(),
                               .device = {kDLCPU, 0},
                               .ndim = 2,
                               .dtype = {kDLFloat, 32, 1},
                               .shape = shared->shape,
                               .strides = shared->strides,
                               .byte_offset = 0};
  Object made = owned(PyCapsule_New(&shared->managed, name, [](PyObject* self) {
    const char* const name_now = PyCapsule_GetName(self);
    if (const std::string_view now = name_now; now != "dltensor" && now != "dltensor_versioned") return;
    release(static_cast<Managed*>(PyCapsule_GetPointer(self, name_now)));
  }));
  (void)shared.release();
  return made.release();
}

}  // namespace

PyObject* dlpack_capsule(const SharedFloats& numbers, size_t columns, bool versioned) {
  if (!versioned) return capsule(numbers, columns, DLManagedTensor{}, "dltensor");
  return capsule(
      numbers, columns,
      DLManagedTensorVersioned{
          .version = {1, 0}, .manager_ctx = nullptr, .deleter = nullptr, .flags = 0, .dl_tensor = {}},
      "dltensor_versioned");
}

}  // namespace heddle::python
