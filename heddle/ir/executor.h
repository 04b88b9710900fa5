// What runs a program. An executor is made for one program and the memory it lives in, keeps its counters
// and epoch across runs, and can be used again after an abort.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/ir/device_code.h"
#include "heddle/ir/program.h"
#include "heddle/ir/trace.h"

namespace heddle {

// Where each buffer of a program lies, by buffer index; every entry is 64-byte aligned. Buffers in the arena
// point into it. Owned by the engine; several programs share weights, pages and state.
struct Memory {
  std::vector<std::byte*> base;
  // Byte offset from a weight buffer's base of each of its panels, by buffer index; empty for the others.
  std::vector<const u64*> panels;
};

// How the launches executor puts a step on its stream.
enum class LaunchMode : u8 {
  kEager,      // kernel by kernel
  kGraph,      // as one CUDA graph
  kDependent,  // a graph whose kernels ask for their weights before the one before has ended
};

// What kernels for a GPU know of the arguments of a program's calls, beside what they are made of. Forms, which models of other
// sizes have in common: dtypes, which tensors are there, how panels are made; of numbers those that are powers of two up to 128
// (features that are off or on, steps of one row, elements side by side, heads, pages), and whether 8 and 64 divide them.
// Sizes: all numbers, of this program alone.
enum class Knowledge { kNothing, kForms, kSizes };

struct ExecutorOptions {
  int threads = 0;  // 0: one for each core this process may use
  const DeviceCode* code =
      nullptr;  // made ahead of time, for all that the program needs; null: compiled when needed
  double hang_limit_ms = 10000;  // a wait longer than this aborts the run with a dump
  std::string simd;              // threads only: name of a lower SIMD level; empty: the best of this CPU
  LaunchMode launch_mode = LaunchMode::kDependent;  // launches only
  Knowledge knowledge = Knowledge::kNothing;        // GPU
  u32 trace_events = 0;  // instructions of a worker that a run notes; 0: none. Launches run call by call then
  // reference only:
  u64 seed = 0;              // which legal interleaving
  bool adversarial = false;  // starve one worker, let the last writer of a counter be late
  bool stale_reads = false;  // a store becomes visible to another worker only over an edge
  std::function<void(const Instruction&, u32 worker)> tap;  // called after each tile
};

struct RunReport {
  int steps = 0;
  u64 tiles_run = 0;   // tiles that did work
  u64 tiles_dead = 0;  // tiles that waited and signalled only
};

// Follows the steps of a run while it goes on, and ends it.
struct StepWatch {
  // A step that chooses one of these tokens, for any of its sequences, is the last.
  std::span<const i32> ends;
  // What a step chose, by sequence. False: the run is to end; one more step may be done, and is told too.
  std::function<bool(std::span<const i32> chosen)> on_step;
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `steps` steps of the program. Throws Error(kDevice) with a dump when a wait outlasts its limit;
  // the next run starts with clean counters.
  virtual RunReport run(int steps) = 0;
  // The same, of a program with a step record, but ends early where `watch` says so: all workers with the same step,
  // and the report has how many there were. What `watch` throws ends the run too, and is thrown.
  virtual RunReport run(int steps, const StepWatch& watch) = 0;
  // Of the last run, where it was traced.
  virtual Trace trace() const { return {}; }
};

// Memory that the host cannot follow addresses into. Copies are done when the call returns.
class MemorySpace {
 public:
  virtual ~MemorySpace() = default;
  virtual std::byte* allocate(size_t bytes) = 0;  // zeros, 128-byte aligned
  virtual void release(std::byte* address) = 0;
  virtual void write(std::byte* to, const void* from, size_t bytes) = 0;
  virtual void read(void* to, const std::byte* from, size_t bytes) = 0;
  virtual i64 available() const = 0;  // bytes that are free
};

// Copies to and from an executor's buffers, which lie in `space` or (null) with the host.
void copy_to(MemorySpace* space, std::byte* to, const void* from, size_t bytes);
void copy_from(MemorySpace* space, void* to, const std::byte* from, size_t bytes);

struct ExecutorSpec {
  const char* name = "";
  const char* doc = "";
  std::unique_ptr<Executor> (*create)(const Program& program, const Memory& memory,
                                      const ExecutorOptions& options) = nullptr;
  std::string (*unavailable)() = nullptr;  // why it cannot run here; empty: it can
  // The same for programs whose code was made ahead of time; null: as `unavailable`.
  std::string (*no_device)() = nullptr;
  // Where a program's buffers must lie, and for how many workers it wants programs; null: the host's own memory, and
  // a worker for each thread.
  MemorySpace& (*space)() = nullptr;
  i32 (*workers)() = nullptr;
  const char* many_rows = nullptr;  // the executor of steps of kManyStepRows and more; null: this one
};

// Devices that are alike for programs.
struct DeviceKind {
  std::string name;      // "h200"; empty: known by the rest alone
  std::string executor;  // that runs programs there
  std::string arch;      // "sm_90a"; empty: nothing is compiled
  i32 units = 0;         // multiprocessors; 0: as many as programs have workers, at least

  // "h200: sm_90a, 132 multiprocessors"
  std::string text() const;
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("name", s.name), v("executor", s.executor), v("arch", s.arch), v("units", s.units);
  }
};

// A backend is a folder of heddle/backend with `const Backend& x_backend()` in it.
struct Backend {
  const char* name = "";
  std::vector<ExecutorSpec> executors;
  std::function<std::string()> describe;  // for `heddle env`
  std::function<std::string()> device;    // what it runs on, in a few words
  // Bytes a second at which it reads memory that no cache holds, with `threads` threads; 0: with all.
  std::function<double(int threads)> read_bandwidth;
  // Devices that programs can be made for where there is none.
  std::vector<DeviceKind> kinds;
  // Where code is compiled for devices: the device here (throws Error where there is none), and what compiles for it.
  std::function<DeviceKind()> kind;
  const DeviceCompiler* compiler = nullptr;  // null: nothing is compiled
};

// The backends of this process, in the order in which they were added; a program adds those that it was built with when
// it starts (engine/builtins.h). Throws Error where there is one of that name.
void add_backend(const Backend& backend);
std::vector<const Backend*> all_backends();
const ExecutorSpec& get_executor(std::string_view name);  // throws Error
const Backend& backend_of(std::string_view executor);     // throws Error
// The architectures that backends compile for, and the backend of one; throws Error with all that are known.
std::vector<std::string> known_archs();
const Backend& backend_for_arch(std::string_view arch);

// The calls of a program with addresses filled in.
struct BoundCall {
  std::vector<std::vector<std::byte>> args;
};
std::vector<BoundCall> bind_calls(const Program& program, const Memory& memory);

// Clamps a tile to the rows that are live; false: none is.
bool clamp_to_live(LiveRows live, const StepHost& host, TileCoord& tile);

}  // namespace heddle
