// The node of torch's autograd for calls of heddle's ops. It saves what a backward reads, as torch's own nodes do, and has
// heddle's module run the backward. node.py compiles it against the torch that is there, with node.h before it.
#include <algorithm>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

namespace heddle::python {
namespace {

using c10::DispatchKey;
using torch::autograd::Edge;
using torch::autograd::InputMetadata;
using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using torch::dynamo::autograd::CompiledNodeArgs;
using torch::dynamo::autograd::SwapSavedVariables;

const NodeHost* host = nullptr;

// Keys of a tensor that is memory and nothing else.
constexpr c10::DispatchKeySet kPlain({DispatchKey::CPU, DispatchKey::CUDA, DispatchKey::AutogradCPU,
                                      DispatchKey::AutogradCUDA, DispatchKey::AutocastCPU,
                                      DispatchKey::AutocastCUDA, DispatchKey::ADInplaceOrView});

bool is_plain(const at::Tensor& tensor) {
  return (tensor.key_set().raw_repr() & ~kPlain.raw_repr()) == 0;
}

// True in no mode or transform of torch, and not below its autograd. The caller knows of autocast.
bool is_unwatched() {
  constexpr c10::DispatchKeySet kAutograd(
      {DispatchKey::AutogradCPU, DispatchKey::AutogradCUDA, DispatchKey::ADInplaceOrView});
  const auto& keys = c10::impl::raw_local_dispatch_key_set;
  return keys.included_ == 0 && (keys.excluded_ & kAutograd.raw_repr()) == 0;
}

// Holds the interpreter's lock.
class Locked {
 public:
  Locked() : state_(PyGILState_Ensure()) {}
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const PyGILState_STATE state_;
};

// References to Python's objects, which may end without its lock.
class Objects {
 public:
  // The caller holds the lock.
  Objects(PyObject* const* objects, int32_t count) {
    if (std::any_of(objects, objects + count, [](PyObject* object) { return object != nullptr; }))
      objects_.assign(objects, objects + count);
    for (PyObject* object : objects_) Py_XINCREF(object);
  }
  Objects(const Objects& other) : objects_(other.objects_) {
    const Locked lock;
    for (PyObject* object : objects_) Py_XINCREF(object);
  }
  ~Objects() {
    if (objects_.empty() || !Py_IsInitialized()) return;
    const Locked lock;
    for (PyObject* object : objects_) Py_XDECREF(object);
  }
  Objects& operator=(const Objects&) = delete;

  PyObject* const* get() const { return objects_.empty() ? nullptr : objects_.data(); }

 private:
  c10::SmallVector<PyObject*, 4> objects_;
};

// New references to what a list of tensors is in Python.
class Wrapped {
 public:
  explicit Wrapped(int32_t count) : objects_(count, nullptr) {}
  explicit Wrapped(const variable_list& tensors) {
    for (const at::Tensor& tensor : tensors) objects_.push_back(tensor.defined() ? wrap(tensor) : nullptr);
  }
  ~Wrapped() {
    for (PyObject* object : objects_) Py_XDECREF(object);
  }
  Wrapped(const Wrapped&) = delete;
  Wrapped& operator=(const Wrapped&) = delete;

  PyObject* const* get() const { return objects_.data(); }
  PyObject** get() { return objects_.data(); }

 private:
  static PyObject* wrap(const at::Tensor& tensor) {
    PyObject* const made = THPVariable_Wrap(tensor);
    if (!made) throw python_error();
    return made;
  }
  c10::SmallVector<PyObject*, 12> objects_;
};

std::string text_of(PyObject* object) {
  PyObject* const text = PyObject_Repr(object);
  const char* const utf8 = text ? PyUnicode_AsUTF8(text) : nullptr;
  if (!utf8) throw python_error();
  std::string made = utf8;
  Py_DECREF(text);
  return made;
}

[[noreturn]] void throw_of_python() {
  python_error error;
  error.persist();
  throw std::move(error);
}

// A call whose gradient is wanted, without the tensors that are saved.
class Call {
 public:
  Call(const NodeOp& op, PyObject* const* attributes)
      : op(op), attributes_(attributes, op.attributes), forms_(op.inputs) {}

  void set_input(int32_t i, const at::Tensor& tensor) {
    forms_[i] = {{tensor.sizes().begin(), tensor.sizes().end()}, tensor.scalar_type()};
  }
  bool is_output(int32_t saved) const { return op.places[saved] >= op.inputs; }

  // The gradients of the inputs that `needs` has a bit for. All grads are there.
  variable_list backward(uint32_t needs, const variable_list& saved, const variable_list& grads) const {
    bool is_direct = !at::GradMode::is_enabled() && is_unwatched();
    for (const at::Tensor& grad : grads) {
      if (grad.sym_numel() == 0) return zeros(needs, grad);
      is_direct = is_direct && is_plain(grad);
    }
    c10::SmallVector<NodeForm, 8> forms(op.inputs, NodeForm{});
    for (int32_t i = 0; is_direct && i < op.inputs; ++i)
      if (needs >> i & 1) forms[i] = forms_[i].for_host();
    const Locked lock;
    const Wrapped of_saved(saved), of_grads(grads);
    Wrapped made(op.inputs);
    const NodeBackward call{.op = &op,
                            .saved = of_saved.get(),
                            .attributes = attributes_.get(),
                            .grads = of_grads.get(),
                            .needs = needs,
                            .forms = is_direct ? forms.data() : nullptr,
                            .made = made.get()};
    if (host->backward(call) != 0) throw_of_python();
    variable_list gradients(op.inputs);
    for (int32_t i = 0; i < op.inputs; ++i)
      if (made.get()[i]) gradients[i] = forms_[i].applied(THPVariable_Unpack(made.get()[i]));
    return gradients;
  }

  // All that tells it from other calls of the op, for compiled autograd.
  void describe(CompiledNodeArgs& args) const {
    for (const Form& form : forms_) args.collect(c10::str(int(form.dtype), at::IntArrayRef(form.size)));
    const Locked lock;
    for (int32_t i = 0; attributes_.get() && i < op.attributes; ++i)
      if (PyObject* const value = attributes_.get()[i]) args.collect(text_of(value));
  }

  const NodeOp& op;

 private:
  struct Form {
    at::DimVector size;
    at::ScalarType dtype = at::ScalarType::Undefined;

    NodeForm for_host() const {
      return {.size = size.data(),
              .rank = int32_t(size.size()),
              .code = uint8_t(dtype == at::kBFloat16 ? 4 : 2),
              .bits = uint8_t(8 * c10::elementSize(dtype))};
    }
    // A gradient as its input has it. Those of heddle's ops have rows instead of leading dimensions.
    at::Tensor applied(const at::Tensor& value) const {
      const at::Tensor made = value.scalar_type() == dtype ? value : value.to(dtype);
      return made.sym_sizes() == c10::fromIntArrayRefSlow(size) ? made : made.reshape(size);
    }
  };

  variable_list zeros(uint32_t needs, const at::Tensor& like) const {
    variable_list made(op.inputs);
    for (int32_t i = 0; i < op.inputs; ++i)
      if (needs >> i & 1) made[i] = at::zeros(forms_[i].size, like.options().dtype(forms_[i].dtype));
    return made;
  }

  const Objects attributes_;
  c10::SmallVector<Form, 4> forms_;  // by input, of those that need a gradient
};

class OpNode final : public Node {
 public:
  OpNode(const NodeOp& op, PyObject* const* attributes) : call_(op, attributes), saved_(op.saved) {}

  // Joins the inputs' graph.
  void follow(PyObject* const* inputs) {
    torch::autograd::edge_list edges(call_.op.inputs);
    for (int32_t i = 0; i < call_.op.inputs; ++i) {
      if (!inputs[i]) continue;
      const at::Tensor& tensor = THPVariable_Unpack(inputs[i]);
      edges[i] = torch::autograd::impl::gradient_edge(tensor);
      if (edges[i].is_valid()) call_.set_input(i, tensor);
    }
    set_next_edges(std::move(edges));
  }

  // Outputs know their node already.
  void save(PyObject* const* inputs, PyObject* const* outputs) {
    for (int32_t i = 0; i < call_.op.saved; ++i) {
      const int32_t place = call_.op.places[i];
      PyObject* const object = call_.is_output(i) ? outputs[place - call_.op.inputs] : inputs[place];
      if (object) saved_[i] = SavedVariable(THPVariable_Unpack(object), call_.is_output(i));
    }
  }

  std::string name() const override { return call_.op.name; }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    for (SavedVariable& saved : saved_) saved.reset_data();
  }

  void compiled_args(CompiledNodeArgs& args) const override {
    args.collect(name());
    for (int32_t i = 0; i < call_.op.saved; ++i) args.collect(saved_[i], call_.is_output(i));
    call_.describe(args);
  }

  // Has compiled autograd call the backward with the tensors of later runs.
  variable_list apply_with_saved(const variable_list& grads, SwapSavedVariables& swap) override {
    for (SavedVariable& saved : saved_) swap.before(saved);
    const variable_list saved = unpack();
    std::vector<at::Tensor> there;
    std::vector<bool> is_there;
    for (const at::Tensor& tensor : saved) {
      is_there.push_back(tensor.defined());
      if (tensor.defined()) there.push_back(tensor);
    }
    const std::vector<InputMetadata> metadata(input_metadata_.begin(), input_metadata_.end());
    const auto later = [call = call_, needs = needs(), is_there, metadata](
                           const variable_list& grads, const std::vector<c10::IValue>& args) {
      variable_list saved;
      for (size_t i = 0, at = 0; i < is_there.size(); ++i)
        saved.push_back(is_there[i] ? args[at++].toTensor() : at::Tensor());
      return call.backward(needs, saved, defined(grads, metadata));
    };
    const std::vector<c10::IValue> args(there.begin(), there.end());
    const auto edges = torch::dynamo::autograd::get_input_metadata(next_edges());
    const auto& compiler = torch::dynamo::autograd::getPyCompilerInterface();
    const std::string bound =
        compiler->bind_function(swap.get_py_compiler(), name(), later,
                                std::vector<at::TypePtr>(args.size(), at::TensorType::get()), true, false);
    variable_list made = compiler->call_function(
        swap.get_py_compiler(), "apply_functional", bound, grads, args,
        torch::dynamo::autograd::IValuePacker<std::vector<std::optional<InputMetadata>>>::pack(edges));
    for (SavedVariable& saved : saved_) swap.after(saved);
    return made;
  }

 private:
  variable_list apply(variable_list&& grads) override {
    const uint32_t wanted = needs();
    if (!wanted) return variable_list(call_.op.inputs);
    const variable_list saved = unpack();
    return call_.backward(wanted, saved, defined(std::move(grads), input_metadata_));
  }

  uint32_t needs() const {
    uint32_t needs = 0;
    for (int32_t i = 0; i < call_.op.inputs; ++i) needs |= uint32_t(task_should_compute_output(i)) << i;
    return needs;
  }

  variable_list unpack() {
    variable_list saved(call_.op.saved);
    const std::lock_guard lock(mutex_);
    for (int32_t i = 0; i < call_.op.saved; ++i)
      saved[i] = call_.is_output(i) ? saved_[i].unpack(getptr()) : saved_[i].unpack();
    return saved;
  }

  // Zeros are the gradient of an output that nothing reads.
  static variable_list defined(variable_list grads, c10::ArrayRef<InputMetadata> metadata) {
    for (size_t i = 0; i < grads.size(); ++i)
      if (!grads[i].defined()) grads[i] = metadata[i].zeros_like();
    return grads;
  }

  Call call_;
  std::vector<SavedVariable> saved_;
};

// Nodes belong to a pointer of c10, or in older versions of torch to one of the standard library.
using NodePointer = decltype(Edge::function);

template <class Pointer, class Made = OpNode>
Pointer make_node(const NodeOp& op, PyObject* const* attributes) {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<Node>>)
    return Pointer(new Made(op, attributes), [](Made* node) { deleteNode(node); });
  else
    return c10::make_intrusive<Made>(op, attributes);
}

bool takes(PyObject* const* inputs, int32_t count) {
  if (!is_unwatched()) return false;
  for (int32_t i = 0; i < count; ++i)
    if (inputs[i] && !is_plain(THPVariable_Unpack(inputs[i]))) return false;
  return true;
}

int attach(const NodeOp& op, PyObject* const* inputs, PyObject* const* outputs, PyObject* const* attributes) {
  HANDLE_TH_ERRORS
  const NodePointer owner = make_node<NodePointer>(op, attributes);
  OpNode* const node = static_cast<OpNode*>(owner.get());
  node->follow(inputs);
  for (int32_t i = 0; i < op.outputs; ++i) {
    const at::Tensor& output = THPVariable_Unpack(outputs[i]);
    const uint32_t number = node->add_input_metadata(output);
    if (torch::autograd::isDifferentiableType(output.scalar_type()))
      torch::autograd::impl::set_gradient_edge(output, Edge(owner, number));
  }
  node->save(inputs, outputs);
  return 0;
  END_HANDLE_TH_ERRORS_RET(-1)
}

const NodeTable table{.takes = takes, .attach = attach};

}  // namespace
}  // namespace heddle::python

extern "C" const heddle::python::NodeTable* heddle_node(const heddle::python::NodeHost* host, int version) {
  if (version != heddle::python::kNodeVersion) return nullptr;
  heddle::python::host = host;
  return &heddle::python::table;
}
