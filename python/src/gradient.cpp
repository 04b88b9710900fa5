#include "python/src/gradient.h"

#include <algorithm>
#include <utility>

#include <dlfcn.h>

#include "heddle/base/error.h"
#include "python/heddle/torch/node.h"
#include "python/src/backward.h"
#include "python/src/torch_route.h"

namespace heddle::python {

namespace nb = nanobind;

// An op with its gradient; it lives as long as the process. Its first part is what nodes know of it.
struct Differentiable : NodeOp {
  explicit Differentiable(OpEntry& of)
      : NodeOp(),
        entry(of),
        backward(of),
        node_name(of.op.name + "_gradientBackward"),
        is_float(std::ranges::any_of(of.outputs, [](const TensorArgument& output) {
          return std::ranges::any_of(output.field->dtypes,
                                     [](DType dtype) { return heddle::is_float(dtype); });
        })) {
    name = node_name.c_str();
    inputs = i32(of.inputs.size()), outputs = i32(backward.results()), attributes = i32(of.attributes.size());
    saved = i32(backward.saved().size()), places = backward.saved().data();
  }

  OpEntry& entry;
  Backward backward;
  const std::string node_name;
  const bool is_float;
};

namespace {

const NodeTable* node_table = nullptr;  // null: no library is loaded, or it is not to be used
const NodeTable* loaded = nullptr;

// Calls with a gradient until the library of nodes is compiled: a script with a few is done before.
constexpr int kPatience = 1000;
int calls_by_python = 0;
bool has_asked = false;  // heddle.torch for a library

void tell_python(const char* function) {
  const Object module = owned(PyImport_ImportModule("heddle.torch.node"));
  owned(PyObject_CallMethod(module.get(), function, nullptr));
}

Differentiable& differentiable(OpEntry& entry) {
  return kept_forever(entry.differentiable, [&] { return new Differentiable(entry); });
}

GradientForm form_of(const NodeForm& form) {
  const DType narrow = form.code == kDLBfloat ? DType::kBf16 : DType::kF16;
  return {form.bits == 32 ? DType::kF32 : narrow,
          {reinterpret_cast<const i64*>(form.size), size_t(form.rank)}};
}

int run_backward(const NodeBackward& call) {
  return guarded([&] {
    auto& op = const_cast<Differentiable&>(static_cast<const Differentiable&>(*call.op));
    BackwardValues given{.saved = call.saved, .grads = call.grads, .attributes = {}};
    given.attributes.resize(size_t(call.op->attributes));
    if (call.attributes) std::copy_n(call.attributes, call.op->attributes, given.attributes.begin());
    std::array<GradientForm, Few<int>::kMost> forms;
    const size_t count = call.forms ? size_t(call.op->inputs) : 0;
    for (size_t i = 0; i < count; ++i)
      if (call.needs >> i & 1) forms[i] = form_of(call.forms[i]);
    Few<Object> made = op.backward.run(call.needs, given, {forms.data(), count});
    for (size_t i = 0; i < made.size(); ++i) call.made[i] = made[i].release();
    return Py_None;
  })
             ? 0
             : -1;
}

constexpr NodeHost kHost{.backward = run_backward};

// True where a node can have the call.
bool fits_node(const Differentiable& op, const Given& given) {
  if (!op.is_float) return false;
  for (size_t i = 0; i < given.inputs.size(); ++i)
    if (given.inputs[i] && !op.backward.has_gradient(i) && wants_gradient(given.inputs[i])) return false;
  return node_table->takes(given.inputs.begin(), i32(given.inputs.size()));
}

Outcome call_with_node(Differentiable& op, const Given& given) {
  Outcome outcome = run_unless_autocast(op.entry, given);
  if (outcome.kind == Outcome::Kind::kWantsAutocast) return outcome;
  const Object& result = outcome.result;
  Few<PyObject*> outputs;
  outputs.resize(size_t(op.outputs));
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = outputs.size() == 1 ? result.get() : PyTuple_GetItem(result.get(), Py_ssize_t(i));
  if (node_table->attach(op, given.inputs.begin(), outputs.begin(), given.attributes.begin()) != 0)
    throw PythonError{};
  last_path().gradient = "node";
  return outcome;
}

PyObject* call_with_python(OpEntry& entry, const Given& given) {
  if (!loaded && ++calls_by_python == kPatience) tell_python("start");
  PyObject* const result = call_torch(entry, given, Route::kGradient);
  last_path().gradient = "python";
  return result;
}

void load_node(nb::handle path) {
  const std::string file = text_of(path.ptr());
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(library, "[autograd node] {} cannot be loaded: {}", file, library ? "" : dlerror());
  const auto entry = reinterpret_cast<decltype(&heddle_node)>(dlsym(library, "heddle_node"));
  const NodeTable* const found = entry ? entry(&kHost, kNodeVersion) : nullptr;
  require(found, "[autograd node] {} is not of this version of heddle; delete it", file);
  node_table = loaded = found;
}

// Has calls use the library that is loaded, or not; tells whether they did.
bool use_node(bool use) {
  const bool before = node_table != nullptr;
  node_table = use ? loaded : nullptr;
  return before;
}

nb::dict gradient_rule(nb::handle name) {
  const Differentiable& op = differentiable(entry_of(text_of(name.ptr())));
  nb::list places, lacks;
  for (const i32 place : op.backward.saved()) places.append(place);
  for (size_t i = 0; i < op.entry.inputs.size(); ++i)
    if (!op.backward.has_gradient(i)) lacks.append(i);
  nb::dict made;
  made["saved"] = nb::tuple(places), made["lacks"] = nb::tuple(lacks);
  return made;
}

class Objects {
 public:
  explicit Objects(const nb::tuple& objects) {
    for (const nb::handle object : objects) all_.push_back(object.is_none() ? nullptr : object.ptr());
  }
  PyObject* const* data() const { return all_.data(); }

 private:
  std::vector<PyObject*> all_;
};

// A gradient's form of Python: (sizes, dtype), or None for an input that needs none.
class Form {
 public:
  explicit Form(nb::handle form) {
    if (form.is_none()) return;
    for (const nb::handle size : nb::cast<nb::tuple>(form[0])) size_.push_back(nb::cast<i64>(size));
    const std::string name = text_of(nb::object(form[1]).ptr());  // "torch.bfloat16"
    for (const DTypeInfo& info : kDTypes)
      if (name == fmt::format("torch.{}", info.numpy)) dtype_ = info.type;
  }
  GradientForm form() const { return {dtype_, size_}; }

 private:
  DType dtype_ = DType::kF32;
  std::vector<i64> size_;
};

// `needs`: a bool for each input. `forms`: by input; None: something looks on that follows no `out`.
nb::list run_gradient(nb::handle name, const nb::tuple& needs, const nb::tuple& saved, const nb::tuple& grads,
                      const nb::dict& attributes, nb::handle forms) {
  Differentiable& op = differentiable(entry_of(text_of(name.ptr())));
  u32 wanted = 0;
  for (size_t i = 0; i < needs.size(); ++i) wanted |= u32(nb::cast<bool>(needs[i])) << i;
  const Objects of_saved(saved), of_grads(grads);
  BackwardValues given{.saved = of_saved.data(), .grads = of_grads.data(), .attributes = {}};
  given.attributes.resize(op.entry.attributes.size());
  for (size_t i = 0; i < given.attributes.size(); ++i)
    given.attributes[i] = PyDict_GetItem(attributes.ptr(), op.entry.attributes[i].key);
  std::vector<Form> kept;
  std::vector<GradientForm> wanted_forms;
  if (!forms.is_none())
    for (const nb::handle form : nb::cast<nb::list>(forms)) kept.emplace_back(form);
  for (const Form& form : kept) wanted_forms.push_back(form.form());
  Few<Object> made = op.backward.run(wanted, given, wanted_forms);
  nb::list gradients;
  for (Object& gradient : made)
    gradients.append(gradient ? nb::steal(gradient.release()) : nb::object(nb::none()));
  return gradients;
}

}  // namespace

PyObject* call_with_gradient(OpEntry& entry, const Given& given) {
  if (!std::exchange(has_asked, true)) tell_python("find");
  if (node_table && !given.out && !entry.op.gradient.empty()) {
    Differentiable& op = differentiable(entry);
    if (fits_node(op, given)) {
      Outcome outcome = call_with_node(op, given);
      if (outcome.kind == Outcome::Kind::kRan) return outcome.result.release();
    }
  }
  return call_with_python(entry, given);
}

void add_gradients(nb::module_& module) {
  module.def("load_node", &load_node);
  module.def("use_node", &use_node);
  module.def("gradient_rule", &gradient_rule);
  module.def("run_gradient", &run_gradient, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().none());
}

}  // namespace heddle::python
