// One call: reads the tensors, makes the outputs that are not given, runs the op.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/ir/call/call_cache.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/ir/shape.h"
#include "python/src/arguments.h"
#include "python/src/columns.h"
#include "python/src/fold.h"
#include "python/src/torch_route.h"
#include "python/src/values.h"

namespace heddle::python {
namespace {

constexpr i64 kSmallCall =
    64 << 10;  // bytes: below it, threads and the interpreter's lock cost more than they give

const Backend& backend_at(const MemoryPlace& place) {
  const auto find = [](std::string_view name) -> const Backend* {
    for (const Backend* backend : all_backends())
      if (backend->name == name) return backend;
    fail(ErrorCode::kUnsupported, "this build has no backend {}", name);
  };
  static const Backend* const cpu = find("cpu");
  if (place.kind != MemoryPlace::Kind::kGpu) return *cpu;
  static const Backend* const cuda = find("cuda");
  return *cuda;
}

OpCaller& caller_of(const MemoryPlace& place) {
  return backend_at(place).op_calls();
}

// The part of a call that follows from its shapes: the outputs that the caller left out.
struct OutputPlan {
  struct Output {
    size_t index;
    DType dtype;
    size_t rank;
    std::array<i64, kMaxRank> size;
  };
  std::vector<Output> outputs;
  i64 workspace_bytes = 0;
  bool is_empty = false;
  const Path::Body* body = nullptr;  // on a GPU
};

// Keeps one copy of each body's names, to the end of the process.
const Path::Body* kept_body(const CallNeeds& needs) {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::map<std::pair<std::string, std::string>, Path::Body>;
  const std::lock_guard lock(mutex);
  return &all.try_emplace({needs.body, needs.why_no_kernel}, Path::Body{needs.body, needs.why_no_kernel})
              .first->second;
}

// Gives other threads of Python the interpreter while it lives.
class Unlocked {
 public:
  explicit Unlocked(bool unlock) : state_(unlock ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked() {
    if (state_) PyEval_RestoreThread(state_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

class Call {
 public:
  Call(OpEntry& entry, const Given& given)
      : entry_(entry), given_(given), is_reference_(uses_reference(entry)) {
    std::memcpy(args_, entry.op.defaults.data(), entry.op.args_size());
    results_.resize(entry.outputs.size());
  }

  void read_arguments() {
    set_attributes(entry_, given_, args_);
    for (size_t i = 0; i < entry_.inputs.size(); ++i)
      if (given_.inputs[i]) read_input(entry_.inputs[i], given_.inputs[i]);
  }

  // True where torch.autocast has a rule for the op, and is on. As in torch, a call that is given its outputs is not converted.
  bool wants_autocast() const {
    const bool has_rule = place_.kind == MemoryPlace::Kind::kGpu ? entry_.autocast != Autocast::kNothing
                                                                 : entry_.autocast == Autocast::kLower;
    return has_rule && !given_.out && kind_->library == Kind::Library::kTorch && is_any_autocast_enabled();
  }

  Object run() {
    take_outputs();
    if (kind_->library == Kind::Library::kTorch) prepare_torch();
    if (entry_.op.configs && !is_reference_) choose_config();
    make_outputs();
    launch();
    if (has_given_ && kind_->library == Kind::Library::kTorch) mark_written();
    return result();
  }

 private:
  // The tensor as rows, in `view`. An input that lies otherwise is copied, once.
  Folded read(const TensorArgument& argument, PyObject* tensor, bool may_copy, View& view) {
    const Argument place{entry_.op.name, argument.name};
    if (!kind_of(tensor) && takes_functions(tensor))
      throw NotMemory(ErrorCode::kInvalidArgument, "no tensor");
    const Kind& kind = library_.kind_of(argument, tensor);
    kind_ = library_.kind();
    view = kind.read(place, tensor, kept_);
    Folded folded = fold(entry_, argument, view);
    if (kind.library == Kind::Library::kTorch && !folded.is_dense && is_negated(tensor))
      folded.lies_as_rows = false;
    if (!folded.lies_as_rows) {
      if (!may_copy || kind.library == Kind::Library::kOther)
        fail(ErrorCode::kInvalidArgument,
             "[{}] {} has strides {} for sizes {}; rows must lie side by side: give a contiguous tensor",
             entry_.op.name, argument.name, sizes_text(view.stride), sizes_text(view.size));
      kept_.push_back(contiguous(kind, tensor));
      ++copies_;
      view = kind.read(place, kept_.back().get(), kept_);
      folded = fold(entry_, argument, view);
    }
    if (place_.kind == MemoryPlace::Kind::kUnknown) place_ = view.place;
    return folded;
  }

  static Object contiguous(const Kind& kind, PyObject* tensor) {
    return owned(kind.library == Kind::Library::kTorch ? PyObject_CallMethod(tensor, "contiguous", nullptr)
                                                       : PyObject_CallMethod(tensor, "copy", "s", "C"));
  }

  void bind(const TensorArgument& argument, const Folded& folded, const View& view) {
    bind_tensor(entry_, argument, folded, view, place_, args_);
    const i64 count = elements(argument.field->tensor(args_));
    bytes_ += count * size_of(view.dtype);
    has_nothing_ = has_nothing_ || count == 0;
  }

  void read_input(const TensorArgument& argument, PyObject* tensor) {
    View view;
    const Folded folded = read(argument, tensor, true, view);
    if (argument.lead >= 0) {
      Leading& leading = leading_[size_t(argument.lead)];
      if (!leading.from) {
        leading = {&argument, folded.leading};
      } else {
        if (!std::ranges::equal(leading.size, folded.leading))
          fail(ErrorCode::kInvalidArgument,
               "[{}] {} has leading dimensions {} and {} has {}; must be the same", entry_.op.name,
               argument.name, sizes_text(folded.leading), leading.from->name, sizes_text(leading.size));
      }
    }
    bind(argument, folded, view);
  }

  void take_output(size_t index, PyObject* tensor) {
    if (!tensor || tensor == Py_None) return;
    const TensorArgument& argument = entry_.outputs[index];
    View view;
    const Folded folded = read(argument, tensor, false, view);
    require_writable(entry_, argument, *kind_, view, tensor);
    if (argument.lead >= 0)
      if (!std::ranges::equal(leading_[size_t(argument.lead)].size, folded.leading))
        fail(ErrorCode::kInvalidArgument, "[{}] {} has leading dimensions {}; must have {} as {}",
             entry_.op.name, argument.name, sizes_text(folded.leading),
             sizes_text(leading_[size_t(argument.lead)].size), leading_[size_t(argument.lead)].from->name);
    bind(argument, folded, view);
    Py_INCREF(tensor);
    results_[index] = Object(tensor);
    has_given_ = true;
  }

  // Reads `out`: a tensor, several in the order of the op's outputs, or a dict of them by name.
  void take_outputs() {
    PyObject* const out = given_.out;
    if (!out) return;
    if (PyDict_Check(out)) {
      Py_ssize_t at = 0;
      for (PyObject *key, *value; PyDict_Next(out, &at, &key, &value);) {
        const std::string name = text_of(key);
        const auto found = std::ranges::find(entry_.outputs, name, &TensorArgument::name);
        if (found == entry_.outputs.end())
          fail(ErrorCode::kInvalidArgument, "[{}] out has {}, which is no output; the outputs are {}",
               entry_.op.name, name, output_names());
        take_output(size_t(found - entry_.outputs.begin()), value);
      }
    } else if (PyTuple_Check(out) || PyList_Check(out)) {
      const Py_ssize_t count = PySequence_Size(out);
      if (size_t(count) > entry_.outputs.size())
        fail(ErrorCode::kInvalidArgument, "[{}] out has {} tensors; the outputs are {}", entry_.op.name,
             count, output_names());
      for (Py_ssize_t i = 0; i < count; ++i) {
        kept_.push_back(owned(PySequence_GetItem(out, i)));
        take_output(size_t(i), kept_.back().get());
      }
    } else {
      take_output(0, out);
    }
    for (size_t i = 0; i < results_.size(); ++i)
      if (results_[i]) require_own_memory(entry_, entry_.outputs[i], args_);
  }

  std::string output_names() const {
    std::string names;
    for (const TensorArgument& output : entry_.outputs) names += (names.empty() ? "" : ", ") + output.name;
    return names;
  }

  void prepare_torch() {
    is_large_ = bytes_ >= kSmallCall;
    if (is_large_ && place_.kind != MemoryPlace::Kind::kGpu) threads_ = torch_threads();
    if (has_given_)
      for (const Object& result : results_)
        if (result) require_no_gradient(entry_.op.name, result.get());
  }

  void choose_config() {
    const bool on_gpu = place_.kind == MemoryPlace::Kind::kGpu;
    static tune::OpTuner* of_cpu = nullptr;  // the interpreter's lock guards it
    if (!on_gpu && !of_cpu) of_cpu = &tune::OpTuner::of_process(backend_at(place_), 0);
    tune::OpTuner& tuner = on_gpu ? tune::OpTuner::of_process(backend_at(place_), place_.device) : *of_cpu;
    if (!tuner.may_choose()) return;
    entry_.prepare(place_);
    const CallSite site = this->site();
    const Unlocked others(tune::thread_settings().policy == tune::Policy::kPickBest);
    tuned_ = tuner.choose(entry_.op, args_, site);
  }

  OutputPlan plan() {
    const CheckedCall call = check_call(entry_.op, args_);
    OutputPlan plan{.is_empty = call.is_empty};
    for (size_t i = 0; i < entry_.outputs.size(); ++i) {
      const TensorArgument& output = entry_.outputs[i];
      if (results_[i] || output.field->optional) continue;
      const Tensor& tensor = output.field->tensor(call.args.data());
      OutputPlan::Output made{.index = i, .dtype = tensor.dtype, .rank = tensor.rank, .size = {}};
      std::copy(tensor.size, tensor.size + tensor.rank, made.size.begin());
      plan.outputs.push_back(made);
    }
    if (place_.kind == MemoryPlace::Kind::kGpu && !call.is_empty) {
      const CallNeeds needs = caller_of(place_).needs(entry_.op, call.args.data(), site());
      plan.workspace_bytes = needs.workspace_bytes, plan.body = kept_body(needs);
    }
    return plan;
  }

  CallSite site() const {
    CallSite site{.stream = kind_->stream(place_), .device = place_.device, .threads = threads_};
    if (place_.kind != MemoryPlace::Kind::kGpu) site.device = -1;
    if (tuned_) site.config = &tuned_->config;
    return site;
  }

  void make_outputs() {
    const bool complete = std::ranges::all_of(entry_.outputs, [&](const TensorArgument& output) {
      return output.field->optional || results_[size_t(&output - entry_.outputs.data())];
    });
    if (complete && place_.kind != MemoryPlace::Kind::kGpu) return;
    static thread_local CallCache<OutputPlan> cache;
    u64 place = place_.kind == MemoryPlace::Kind::kGpu ? (u64(place_.device) + 1) << 16 : 0;
    constexpr u64 kAlignment = 16;  // bytes; CallNeeds depend on it
    if (entry_.op.kernel && place > 0) place += cache.layout(entry_.op).misaligned(args_, kAlignment);
    const OutputPlan& plan = cache.find(entry_.op, args_, tuned_ ? &tuned_->config : nullptr, place,
                                        [&](const CallLayout&) { return this->plan(); });
    workspace_bytes_ = plan.workspace_bytes, body_ = plan.body;
    for (const OutputPlan::Output& output : plan.outputs) make_output(output);
  }

  void make_output(const OutputPlan::Output& output) {
    const TensorArgument& argument = entry_.outputs[output.index];
    const Argument place{entry_.op.name, argument.name};
    std::array<i64, 32> size;
    size_t rank = 0;
    if (argument.lead >= 0) {
      const std::span<const i64> leading = leading_[size_t(argument.lead)].size;
      rank = leading.size();
      std::ranges::copy(leading, size.begin());
    }
    for (size_t d = argument.lead >= 0 ? 1 : 0; d < output.rank; ++d) size[rank++] = output.size[d];
    View view;
    results_[output.index] = kind_->make(place, output.dtype, {size.data(), rank}, place_, view, kept_);
    bind(argument, fold(entry_, argument, view), view);
  }

  void launch() {
    Path& path = last_path();
    path.entry = &entry_, path.reference = is_reference_, path.empty = false;
    path.place = place_, path.copies = copies_, path.threads = 0, path.body = body_, path.gradient = "";
    if (tuned_ || path.tuned) path.tuned = tuned_;  // rarely: counting its owners takes time
    if (place_.kind != MemoryPlace::Kind::kGpu) require_columns(entry_, args_);
    if (path.reference) return run_reference();
    if (has_nothing_ && !check_call(entry_.op, args_).of_nothing.empty()) return run_of_nothing();
    entry_.prepare(place_);
    CallSite site = this->site();
    Object workspace;
    if (workspace_bytes_ > 0) {
      const i64 size = workspace_bytes_;
      const Argument place{entry_.op.name, "workspace"};
      View view;
      workspace = kind_->make(place, DType::kU8, {&size, 1}, place_, view, kept_);
      site.workspace = static_cast<std::byte*>(view.data);
      site.workspace_bytes = size;
    }
    path.threads = bytes_ < kSmallCall ? 1 : site.threads;
    OpCaller& caller = caller_of(place_);
    const Unlocked others(bytes_ >= kSmallCall || place_.kind == MemoryPlace::Kind::kGpu);
    caller.run(entry_.op, args_, site);
  }

  void run_reference() {
    if (place_.kind == MemoryPlace::Kind::kGpu)
      fail(ErrorCode::kUnsupported, "[{}] the reference runs on tensors of the CPU; these are on {}",
           entry_.op.name, place_.text());
    CheckedCall call = check_call(entry_.op, args_);
    if (call.of_nothing.empty()) {
      call.require_outputs(entry_.op);
      if (call.is_empty) return;
    }
    HostValues values;
    const Unlocked others(true);
    entry_.op.reference(call.args.data(), values);
  }

  // Outputs of inputs without elements, as a product over no columns: no body runs there. The reference makes them on the
  // host.
  void run_of_nothing() {
    if (place_.kind != MemoryPlace::Kind::kGpu) return run_reference();
    Given on_host = given_;
    on_host.out = nullptr;
    for (PyObject*& input : on_host.inputs) {
      if (!input) continue;
      kept_.push_back(owned(PyObject_CallMethod(input, "cpu", nullptr)));
      input = kept_.back().get();
    }
    const Object made = run_op(entry_, on_host);
    size_t at = 0;
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!results_[i] || entry_.outputs[i].field->optional) continue;
      PyObject* const one =
          PyTuple_Check(made.get()) ? PyTuple_GetItem(made.get(), Py_ssize_t(at++)) : made.get();
      const Object done = owned(PyObject_CallMethod(results_[i].get(), "copy_", "O", one));
    }
  }

  void mark_written() const {
    for (const Object& result : results_)
      if (result) increment_version(result.get());
  }

  Object result() {
    size_t count = 0;
    Object* only = nullptr;
    for (Object& result : results_)
      if (result) ++count, only = &result;
    if (count == 1) return std::move(*only);
    Object all = owned(PyTuple_New(Py_ssize_t(count)));
    Py_ssize_t at = 0;
    for (Object& result : results_)
      if (result) PyTuple_SetItem(all.get(), at++, result.release());
    return all;
  }

  struct Leading {
    const TensorArgument* from = nullptr;
    std::span<const i64> size;
  };

  OpEntry& entry_;
  const Given& given_;
  const bool is_reference_;
  OneLibrary library_{entry_};
  const Kind* kind_ = nullptr;  // the first tensor's
  MemoryPlace place_;
  alignas(16) std::byte args_[kMostArgs];
  std::shared_ptr<const tune::TunedConfig> tuned_;  // null: the op's default configuration
  Few<Leading> leading_;
  Few<Object> results_;  // by OpEntry::outputs
  Kept kept_;
  i64 bytes_ = 0, workspace_bytes_ = 0;
  const Path::Body* body_ = nullptr;
  int copies_ = 0, threads_ = 0;
  bool has_given_ = false, is_large_ = false, has_nothing_ = false;
};

}  // namespace

Path& last_path() {
  static thread_local Path path;
  return path;
}

Object run_op(OpEntry& entry, const Given& given) {
  Call call(entry, given);
  call.read_arguments();
  return call.run();
}

Outcome run_unless_autocast(OpEntry& entry, const Given& given) {
  Call call(entry, given);
  call.read_arguments();
  if (call.wants_autocast()) return {Outcome::Kind::kWantsAutocast, {}};
  return {Outcome::Kind::kRan, call.run()};
}

}  // namespace heddle::python
