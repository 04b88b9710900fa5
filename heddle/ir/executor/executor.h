// An executor runs a program. It is made for one program and one Memory, keeps its counters and epoch across
// runs, and can be used again after an abort. It may want its buffers in memory of its own (MemorySpace): the
// engine then allocates there, and copies the step record there and back around each run.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/ir/executor/device_code.h"
#include "heddle/ir/executor/memory_space.h"
#include "heddle/ir/program/program.h"
#include "heddle/ir/trace.h"

namespace heddle {

// Where each buffer of a program lies, by buffer index. Every entry is 64-byte aligned, and buffers in the
// arena point into it. The engine owns the memory; several programs share weights, pages and state.
struct Memory {
  std::vector<std::byte*> base;
  // By buffer index: the byte offset of each panel from its weight buffer's base; empty for other buffers.
  std::vector<const u64*> panels;
};

// The way the launches executor puts a step on its stream.
enum class LaunchMode : u8 {
  kEager,      // kernel by kernel
  kGraph,      // as one CUDA graph
  kDependent,  // a graph whose kernels prefetch their weights before the previous kernel has ended
};

// Which call arguments are compiled into GPU kernels as constants. Types: dtypes, which tensors exist, how
// panels are laid out. Forms are facts that models of other sizes share: numbers that are powers of two up to
// 128 (features that are off or on, steps of one row, adjacent elements, heads, pages), and whether 8 and 64
// divide a number. Sizes are all numbers of this program.
enum class Knowledge { kNothing, kTypes, kForms, kSizes };

// A run that its caller ended (ExecutorOptions::cancelled), which is no fault of the device.
class Cancelled : public Error {
 public:
  explicit Cancelled(const std::string& message) : Error(ErrorCode::kDevice, message) {}
};

struct ExecutorOptions {
  i32 device = 0;   // ordinal among the backend's devices; the Memory must lie in its space
  int threads = 0;  // 0: one for each core that this process may use
  // Made ahead of time, and complete for the program; null: the executor compiles when needed.
  const DeviceCode* code = nullptr;
  double hang_limit_ms = 10000;  // a wait longer than this aborts the run with a dump
  std::string simd;              // threads only: name of a lower SIMD level; empty: the best one of this CPU
  LaunchMode launch_mode = LaunchMode::kDependent;  // launches only
  Knowledge knowledge = Knowledge::kNothing;        // GPU
  // threads only: asked every 50 ms while a run goes on; true ends it with Cancelled, and the next run works. What the run
  // computed so far is lost.
  std::function<bool()> cancelled = {};
  // Instructions of each worker that a run records; 0: none. A traced `launches` run launches call by call.
  u32 trace_events = 0;
  // reference only:
  u64 seed = 0;              // chooses one legal interleaving
  bool adversarial = false;  // starves one worker, and makes the last producer of a counter late
  bool stale_reads = false;  // a store becomes visible to another worker only through an edge
  std::function<void(const Instruction&, u32 worker)> tap;  // called after each tile
};

struct RunReport {
  int steps = 0;
  u64 tiles_run = 0;   // tiles that did work
  u64 tiles_dead = 0;  // tiles that only waited and signalled
};

// Follows the steps of a run while it goes on, and can end it. The run tells the host of each step while the
// next one runs. It ends after the same step on all workers: at a token of `ends`, or when the host asks. A
// host that asks may be one step late; the engine drops that step. The CPU executors and `launches` watch a
// run step by step; in the megakernel the worker that chooses tokens writes them to a ring in host memory
// (HostRing in backend/cuda/device/params.h).
struct StepWatch {
  // A step that chooses one of these tokens, for any of its sequences, is the last step.
  std::span<const i32> ends;
  // Receives the tokens that a step chose, by sequence. Returning false ends the run; one more step may run
  // and is reported too.
  std::function<bool(std::span<const i32> chosen)> on_step;
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `steps` steps of the program. Throws Error(kDevice) with a dump when a wait exceeds its limit; the
  // next run starts with clean counters.
  virtual RunReport run(int steps) = 0;
  // Runs up to `steps` steps of a program with a step record, and ends when `watch` says so. All workers end
  // after the same step, and the report has the number of steps. An exception of `watch` ends the run too,
  // and is thrown again.
  virtual RunReport run(int steps, const StepWatch& watch) = 0;
  // The trace of the last run, if it was traced.
  virtual Trace trace() const { return {}; }
  // Says what runs each call, for people: "linear_kernel.sm90 (rows=256), 132 CTAs of 384 threads", or why its op's whole kernel does
  // not; "" for ops without one. Empty where all calls run tile by tile.
  virtual std::vector<std::string> bodies() const { return {}; }
};

struct ExecutorSpec {
  const char* name = "";
  const char* doc = "";
  std::unique_ptr<Executor> (*create)(const Program& program, const Memory& memory,
                                      const ExecutorOptions& options) = nullptr;
  std::string (*unavailable)() = nullptr;  // why it cannot run here; empty: it can
  // Same, for programs whose code was made ahead of time; null: use `unavailable`.
  std::string (*no_device)() = nullptr;
  // Where a program's buffers must lie, and for how many workers it needs programs. Null: in the host's
  // memory, with a worker for each thread.
  // Each throws Error if the backend has no such device.
  MemorySpace& (*space)(i32 device) = nullptr;
  i32 (*workers)(i32 device) = nullptr;
  const char* many_rows = nullptr;  // the executor of steps with at least kManyStepRows rows; null: this one
  // Executor::bodies() of a program that a device of `arch` would run; null: it runs all calls tile by tile.
  std::vector<std::string> (*bodies)(const Program& program, const std::string& arch) = nullptr;
};

// A kind of device: programs and code made for one device of a kind run on every other.
struct DeviceKind {
  std::string name;      // "h200"; empty: only the other fields describe it
  std::string executor;  // the executor that runs programs there
  std::string arch;      // "sm_90a"; empty: nothing is compiled
  i32 units = 0;         // multiprocessors; 0: at least as many as programs have workers

  // Text such as "h200: sm_90a, 132 multiprocessors".
  std::string text() const;
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("name", s.name), v("executor", s.executor), v("arch", s.arch), v("units", s.units);
  }
};

class OpCaller;  // ir/call/op_call.h

// A backend is a folder of heddle/backend with a function `const Backend& x::backend()`.
struct Backend {
  const char* name = "";
  std::vector<ExecutorSpec> executors;
  std::function<std::string()> describe;  // for `heddle env`
  // A device by its ordinal, in a few words. Throws Error if there is no such device.
  std::function<std::string(i32 device)> device;
  // The devices that can be used, the best one to take first. Null: there is device 0 alone.
  std::function<std::vector<i32>()> devices;
  // Bytes per second when a device, by `threads` threads (0: all), reads memory that no cache holds.
  std::function<double(i32 device, int threads)> read_bandwidth;
  // Runs single ops on a caller's memory. Throws Error(kUnsupported) where it cannot.
  OpCaller& (*op_calls)() = nullptr;
  // Devices that programs can be made for without having one.
  std::vector<DeviceKind> kinds;
  // The kind of one of this machine's devices, if the backend compiles code. Throws Error if there is none.
  std::function<DeviceKind(i32 device)> kind;
  const DeviceCompiler* compiler = nullptr;  // null: nothing is compiled
};

// The backends of this process, in the order in which they were added. A program adds its built-in ones when
// it starts (engine/builtins.h). Throws Error when the name is taken.
void add_backend(const Backend& backend);
std::vector<const Backend*> all_backends();
const ExecutorSpec& get_executor(std::string_view name);  // throws Error
const Backend& backend_of(std::string_view executor);     // throws Error
// The architectures that backends compile for, and the backend of one. An unknown architecture throws Error
// that lists all of them.
std::vector<std::string> known_archs();
const Backend& backend_for_arch(std::string_view arch);

// A call of a program with addresses filled in.
struct BoundCall {
  std::vector<std::vector<std::byte>> args;
};
std::vector<BoundCall> bind_calls(const Program& program, const Memory& memory);

// Clamps a tile to the rows that are live. Returns false when none is.
bool clamp_to_live(LiveRows live, const StepHost& host, TileCoord& tile);

}  // namespace heddle
