// Programs of scheduled calls. A program is made once for calls that differ in their addresses alone; an executor once
// for addresses.
#include "python/src/graph.h"

#include <algorithm>
#include <map>
#include <memory>

#include <unistd.h>

#include "heddle/base/error.h"
#include "heddle/engine/builtins.h"
#include "heddle/ir/check/check.h"
#include "heddle/ir/program/print.h"
#include "heddle/schedule/schedule.h"
#include "heddle/trace/timeline.h"
#include "python/src/policy.h"
#include "python/src/torch_route.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

struct Settings {
  std::string executor;   // none: the one of the tensors' device
  std::string scheduler;  // its name
  nb::object policy;      // Python's own scheduler; none: the one of that name
  int workers = 0;
  bool tracing = false;
};

// The programs that this process has made. The interpreter's lock guards it.
class Programs {
 public:
  std::shared_ptr<const Program> find(const MemoryGraph& calls, const Settings& settings) {
    const std::string key =
        fmt::format("{}|{}|{}|{}|{}", settings.executor, settings.scheduler,
                    static_cast<const void*>(settings.policy.ptr()), settings.workers, calls.key);
    if (const auto found = made_.find(key); found != made_.end()) return found->second.program;
    const OwnPolicy policy = settings.policy ? policy_of(settings.policy) : OwnPolicy{};
    auto program = std::make_shared<const Program>(
        compile_calls(calls, settings.executor, settings.scheduler, settings.workers, policy));
    ++count_;
    if (made_.size() >= kMost) made_.clear();
    made_.emplace(key, Made{program, settings.policy});
    return program;
  }
  size_t count() const { return count_; }

 private:
  struct Made {
    std::shared_ptr<const Program> program;
    nb::object policy;  // kept, so that its address in the key stays its own
  };
  static constexpr size_t kMost = 256;
  std::map<std::string, Made> made_;
  size_t count_ = 0;
};

Programs& programs() {
  static auto& all = *new Programs;  // it holds objects of Python, which ends before statics do
  return all;
}

u32 longest_stream(const Program& program) {
  size_t longest = 0;
  for (const auto& stream : program.workers) longest = std::max(longest, stream.size());
  return u32(longest);
}

class CallProgram {
 public:
  CallProgram(Settings settings) : settings_(std::move(settings)) {
    entries();  // which register ops and backends
    if (!settings_.policy) get_scheduler(settings_.scheduler);
    if (!settings_.executor.empty()) get_executor(settings_.executor);
  }
  ~CallProgram() { leave(); }
  CallProgram(const CallProgram&) = delete;
  CallProgram& operator=(const CallProgram&) = delete;

  // Takes calls: a list of (op, tensors, attributes), whose tensors live as long as the caller runs it.
  void bind(const nb::list& scheduled) {
    Kept kept;
    std::vector<MemoryCall> calls;
    ReadCall first;
    int threads = 0;
    outputs_.clear();
    for (const nb::handle each : scheduled) {
      ReadCall call = read_call(nb::cast<nb::tuple>(each), kept);
      if (uses_reference(*call.entry))
        fail(ErrorCode::kUnsupported,
             "[{}] its backend is 'reference' (heddle.set_backend), and a program runs kernels alone: set "
             "'kernel', or call heddle.ops.{} by itself",
             call.entry->op.name, call.entry->op.name);
      if (calls.empty()) first = call;
      if (!(call.place == first.place))
        fail(ErrorCode::kInvalidArgument,
             "[{}] is scheduled on {}, and {} before it on {}; must be on one device", call.entry->op.name,
             call.place.text(), first.entry->op.name, first.place.text());
      if (call.is_torch) {
        threads = torch_threads();
        for (PyObject* const output : call.outputs) outputs_.push_back(nb::borrow(output));
      }
      calls.push_back(std::move(call.call));
    }
    if (executor_ && owner_ == getpid() && threads == threads_ && is_bound(calls)) return;
    MemoryGraph graph = graph_of_calls(calls);
    Settings settings = settings_;
    const bool on_gpu = first.place.kind == MemoryPlace::Kind::kGpu;
    if (settings.executor.empty()) settings.executor = on_gpu ? "megakernel" : "threads";
    const ExecutorSpec& spec = get_executor(settings.executor);
    require((spec.space != nullptr) == on_gpu, "[graph] executor '{}' runs on {}, and the tensors are on {}",
            settings.executor, spec.space ? "a GPU" : "the host", first.place.text());
    auto program = programs().find(graph, settings);
    leave();
    calls_ = std::move(calls), threads_ = threads;
    program_ = std::move(program), memory_ = std::move(graph.memory);
    graph_ = std::move(graph.graph), spec_ = &spec;
    const ExecutorOptions options{.device = on_gpu ? first.place.device : 0,
                                  .threads = threads,
                                  .cancelled = is_interrupted,
                                  .trace_events = settings.tracing ? longest_stream(*program_) : 0};
    const nb::gil_scoped_release others;
    if (const std::string why = spec.unavailable ? spec.unavailable() : ""; !why.empty())
      fail(ErrorCode::kUnsupported, "[{}] cannot run here: {}", settings.executor, why);
    executor_ = spec.create(*program_, memory_, options);
    owner_ = getpid();
  }

  void run() {
    try {
      const nb::gil_scoped_release others;
      executor_->run(1);
    } catch (const Cancelled&) {
      throw PythonError{};
    }
    for (const nb::object& output : outputs_) increment_version(output.ptr());
  }

  nb::dict check() const {
    CheckReport report;
    {
      const nb::gil_scoped_release others;
      report = check_or_throw(*program_);
    }
    nb::dict made;
    made["instructions"] = report.instructions;
    made["waits"] = report.waits;
    made["milliseconds"] = report.milliseconds;
    return made;
  }

  std::string text() const { return print_graph(graph_) + print_program(*program_); }
  std::string executor() const { return spec_->name; }
  bool on_gpu() const { return spec_->space != nullptr; }
  size_t workers() const { return program_->workers.size(); }

  // (rows of i64, columns' names, nodes, ops of nodes): one row for each event
  nb::tuple trace() const {
    const Timeline timeline = this->timeline();
    std::vector<i64> rows;
    for (const TraceLane& lane : timeline.trace.lanes)
      for (const TraceEvent& event : lane.events) {
        const TimelineInstruction& instruction = timeline.at(lane, event);
        const i64 call = instruction.call == kNoCall ? -1 : i64(instruction.call);
        for (const i64 value :
             {i64(lane.worker), i64(lane.unit), i64(lane.role), call, i64(event.fetched), i64(event.ready),
              i64(event.computed), i64(event.done), i64(instruction.bytes)})
          rows.push_back(value);
        for (const i32 at : instruction.tile) rows.push_back(at);
      }
    nb::list nodes, ops;
    for (const TimelineCall& call : timeline.calls) {
      nodes.append(nb::str(call.node.c_str()));
      ops.append(nb::str(timeline.ops[call.op].c_str()));
    }
    return nb::make_tuple(nb::bytes(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(i64)),
                          nodes, ops);
  }
  void write_trace(nb::handle path) const { write_timeline(timeline(), text_of(path.ptr())); }

 private:
  Timeline timeline() const {
    require(settings_.tracing, "[trace] the run was not traced; give MegakernelConfig(tracing=True)");
    Trace trace = executor_->trace();
    require(!trace.lanes.empty(), "[trace] {} notes nothing of its runs", spec_->name);
    return make_timeline(*program_, std::move(trace),
                         {.executor = spec_->name, .bodies = executor_->bodies()});
  }

  bool is_bound(const std::vector<MemoryCall>& calls) const {
    return std::ranges::equal(calls, calls_, [](const MemoryCall& a, const MemoryCall& b) {
      return a.op == b.op && a.args == b.args;
    });
  }

  // A process that forked has none of the executor's threads, so that it cannot end them.
  void leave() {
    if (executor_ && owner_ != getpid()) {
      [[maybe_unused]] Executor* const left = executor_.release();
    } else {
      executor_.reset();
    }
  }

  const Settings settings_;
  std::vector<MemoryCall> calls_;  // that the executor was made for
  std::shared_ptr<const Program> program_;
  Graph graph_;
  Memory memory_;
  const ExecutorSpec* spec_ = nullptr;
  std::unique_ptr<Executor> executor_;
  pid_t owner_ = 0;
  int threads_ = 0;                  // given to torch; 0: all
  std::vector<nb::object> outputs_;  // torch's, whose versions a run counts
};

nb::list names_of_schedulers() {
  nb::list names;
  for (const Scheduler* scheduler : all_schedulers()) names.append(nb::str(scheduler->name));
  return names;
}

}  // namespace

void add_graph(nb::module_& module) {
  nb::class_<CallProgram>(module, "CallProgram")
      .def(
          "__init__",
          [](CallProgram* made, nb::handle executor, nb::handle scheduler, int workers, bool tracing) {
            const bool is_name = PyUnicode_Check(scheduler.ptr());
            new (made) CallProgram(
                Settings{.executor = text_of(executor.ptr()),
                         .scheduler = is_name ? text_of(scheduler.ptr()) : name_of_policy(scheduler),
                         .policy = is_name ? nb::object() : nb::borrow(scheduler),
                         .workers = workers,
                         .tracing = tracing});
          },
          nb::arg("executor"), nb::arg("scheduler"), nb::arg("workers"), nb::arg("tracing"))
      .def("bind", &CallProgram::bind)
      .def("run", &CallProgram::run)
      .def("check", &CallProgram::check)
      .def("trace", &CallProgram::trace)
      .def("write_trace", &CallProgram::write_trace)
      .def("text", [](const CallProgram& calls) { return nb::str(calls.text().c_str()); })
      .def("executor", [](const CallProgram& calls) { return nb::str(calls.executor().c_str()); })
      .def("on_gpu", &CallProgram::on_gpu)
      .def("workers", &CallProgram::workers);
  module.def("schedulers", &names_of_schedulers);
  module.def("programs_made", [] { return programs().count(); });
}

}  // namespace heddle::python
