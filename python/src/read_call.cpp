#include <algorithm>

#include "heddle/base/error.h"
#include "python/src/arguments.h"
#include "python/src/fold.h"
#include "python/src/graph.h"
#include "python/src/torch_route.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

class Reader {
 public:
  Reader(OpEntry& entry, nb::dict tensors, nb::dict attributes, Kept& kept)
      : entry_(entry), tensors_(std::move(tensors)), attributes_(std::move(attributes)), kept_(kept) {}

  ReadCall run() {
    if (!entry_.why_not.empty()) fail(ErrorCode::kUnsupported, "[{}] {}", entry_.op.name, entry_.why_not);
    made_ = {.call = {&entry_.op, entry_.op.defaults}, .entry = &entry_, .place = {}, .outputs = {}};
    sort();
    set_attributes(entry_, given_, made_.call.args.data());
    for (const TensorArgument& input : entry_.inputs) read(input);
    for (const TensorArgument& output : entry_.outputs) read(output);
    for (const TensorArgument& output : entry_.outputs)
      if (given(output.key)) require_own_memory(entry_, output, made_.call.args.data());
    if (made_.is_torch) require_no_gradient(entry_, given_, "a program has none; use torch.no_grad()");
    entry_.prepare(made_.place);
    return std::move(made_);
  }

 private:
  // Borrowed; null where it is left out.
  PyObject* given(PyObject* key) const {
    PyObject* const value = PyDict_GetItem(tensors_.ptr(), key);
    return value == Py_None ? nullptr : value;
  }

  void sort() {
    size_t known = 0;
    given_.inputs.resize(entry_.inputs.size());
    given_.attributes.resize(entry_.attributes.size());
    for (size_t i = 0; i < entry_.inputs.size(); ++i) {
      given_.inputs[i] = given(entry_.inputs[i].key);
      known += size_t(PyDict_Contains(tensors_.ptr(), entry_.inputs[i].key) == 1);
    }
    for (const TensorArgument& output : entry_.outputs)
      known += size_t(PyDict_Contains(tensors_.ptr(), output.key) == 1);
    size_t known_attributes = 0;
    for (size_t i = 0; i < entry_.attributes.size(); ++i) {
      given_.attributes[i] = PyDict_GetItem(attributes_.ptr(), entry_.attributes[i].key);
      known_attributes += size_t(given_.attributes[i] != nullptr);
    }
    if (known != tensors_.size() || known_attributes != attributes_.size()) refuse_unknown();
  }

  [[noreturn]] void refuse_unknown() const {
    std::string names;
    for (const auto* arguments : {&entry_.inputs, &entry_.outputs})
      for (const TensorArgument& argument : *arguments) names += (names.empty() ? "" : ", ") + argument.name;
    for (const AttributeArgument& attribute : entry_.attributes) names += ", " + attribute.field->name;
    std::string given;
    for (const auto& dict : {tensors_, attributes_})
      for (const auto& [key, value] : dict) given += (given.empty() ? "" : ", ") + text_of(key.ptr());
    throw WrongCall(
        fmt::format("[{}] is scheduled with {}; its arguments are {}", entry_.op.name, given, names));
  }

  void read(const TensorArgument& argument) {
    PyObject* const tensor = given(argument.key);
    const bool writes = argument.field->writes();
    if (!tensor) {
      if (argument.field->optional) return;
      fail(ErrorCode::kInvalidArgument, "[{}] {} is missing; must be given{}", entry_.op.name, argument.name,
           writes ? ", because a program writes its outputs where they are" : "");
    }
    const Kind* const kind = &library_.kind_of(argument, tensor);
    const Argument place{entry_.op.name, argument.name};
    const View view = kind->read(place, tensor, kept_);
    const Folded folded = fold(entry_, argument, view);
    const bool is_torch = kind->library == Kind::Library::kTorch;
    if (!folded.lies_as_rows || (is_torch && !folded.is_dense && is_negated(tensor)))
      fail(ErrorCode::kInvalidArgument,
           "[{}] {} has strides {} for sizes {}; rows must lie side by side: give a contiguous tensor",
           entry_.op.name, argument.name, sizes_text(view.stride), sizes_text(view.size));
    if (made_.place.kind == MemoryPlace::Kind::kUnknown) made_.place = view.place;
    bind_tensor(entry_, argument, folded, view, made_.place, made_.call.args.data());
    made_.is_torch |= is_torch;
    if (!writes) return;
    require_writable(entry_, argument, *kind, view, tensor);
    if (is_torch) require_no_gradient(entry_.op.name, tensor);
    made_.outputs.push_back(tensor);
  }

  OpEntry& entry_;
  const nb::dict tensors_, attributes_;
  Kept& kept_;
  Given given_;
  OneLibrary library_{entry_};
  ReadCall made_;
};

}  // namespace

ReadCall read_call(const nb::tuple& scheduled, Kept& kept) {
  return Reader(entry_of(text_of(scheduled[0].ptr())), nb::cast<nb::dict>(scheduled[1]),
                nb::cast<nb::dict>(scheduled[2]), kept)
      .run();
}

}  // namespace heddle::python
