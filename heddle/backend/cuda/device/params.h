// The parameters of a kernel: the program in device memory. Host and device read this file: no standard headers.
#pragma once

#include "heddle/ir/instruction.h"
#include "heddle/ir/row_classes.h"
#include "heddle/ir/step.h"
#include "heddle/ir/tensor.h"
#include "heddle/ir/trace_event.h"

namespace heddle {

// Words from one counter to the next: each has a cache line of its own.
constexpr u32 kCounterStride = 32;

// The thing that a worker waited for in vain.
enum class Awaited : u32 { kNothing, kCounter, kVerdict, kPanels };

// The first fault of a run, written once by the device, decoded by the host.
struct FaultRecord {
  Awaited awaited = Awaited::kNothing;
  u32 worker = 0;
  u32 counter = 0, seen = 0, wanted = 0;  // for kCounter; kVerdict has the last two
  u32 stop = 0;                           // not 0: every wait leaves
};

// Where each worker stands, for the dump after a fault.
enum class LoaderWaits : u32 { kNothing, kInstruction, kInputs, kRoom };
struct WorkerPlace {
  struct At {
    u32 instruction = 0;  // index in the worker's stream
    u32 epoch = 0;
  };
  At consumers, loader;
  LoaderWaits loader_waits = LoaderWaits::kNothing;
};

// Where a worker ran, and readings of its clock together with the clock that all workers share.
struct TraceClocks {
  struct Point {
    u64 ticks = 0, nanoseconds = 0;
  };
  Point begin, end;
  u32 multiprocessor = 0, reserved = 0;
};

// Where a trace is written. Lanes: the consumers of all workers, then their loaders.
struct TraceParams {
  TraceEvent* events = nullptr;   // [lanes, capacity]; null: the run is not traced
  u32 capacity = 0;               // events that a lane has room for
  u32* counts = nullptr;          // by lane: events, including those that found no room
  TraceClocks* clocks = nullptr;  // by worker
  u64* marks = nullptr;           // [workers, capacity]: nanoseconds at the end of its consumers' events
};

// The tokens and the number of finished steps, which the device writes during a run. It lies in page-locked memory of the host.
struct HostRing {
  static constexpr u32 kSteps = u32(StepDevice::kHistory);  // as many as a run may have

  u32 stop = 0;                // written by the host: the run should end
  alignas(128) u32 steps = 0;  // written by the device: steps whose tokens are there
  // Tokens follow, i32 [kSteps, sequences]: what each step chose.
  i32* tokens(u32 step, u32 sequences) { return reinterpret_cast<i32*>(this + 1) + u64(step) * sequences; }
  static u64 bytes(u32 sequences) { return sizeof(HostRing) + u64(kSteps) * sequences * sizeof(i32); }
};

// A run that the host watches.
struct WatchParams {
  static constexpr u32 kEnds = 8;

  HostRing* ring = nullptr;     // null: nobody watches
  const i32* chosen = nullptr;  // by sequence of the step record
  u32 worker = 0;               // the worker whose tile chooses; it says whether the run goes on
  i32 ends[kEnds] = {};         // tokens that end the run
  u32 num_ends = 0;
  u32* verdict = nullptr;  // 2 x steps that are done, + 1 if the last of them ends the run
};

// Memory for what does not fit on chip.
struct SpillRoom {
  u8* memory = nullptr;
  i64 bytes = 0;  // per multiprocessor
};

struct KernelParams {
  const Instruction* instructions = nullptr;  // streams one after the other
  const u32* stream_begin = nullptr;          // by worker: index of its first instruction
  const u8* args = nullptr;                   // bound arguments of all calls
  const u32* call_args = nullptr;             // by call: where they begin, bytes
  const LiveRows* call_live = nullptr;        // by call
  const StepHost* host = nullptr;             // null: a program without a step record
  u32 host_bytes = 0;
  u32* counters = nullptr;  // kCounterStride apart
  FaultRecord* fault = nullptr;
  WorkerPlace* places = nullptr;  // by worker
  u32* tiles = nullptr;           // {run, dead}
  SpillRoom spill;
  u32 ring_slots = 0;         // each has KernelTraits::slot_bytes
  u32 in_flight = 8;          // slots whose copies are under way at most
  u32 in_flight_waiting = 2;  // the limit while consumers wait for other workers
  u32 first_epoch = 1, steps = 1;
  u32 spin_limit = 0;   // microseconds a wait may last
  u64 panel_limit = 0;  // this limit in ticks of a multiprocessor
  TraceParams trace;
  WatchParams watch;
};

// One call of the launches executor.
struct CallParams {
  u32 first = 0;  // index of the instruction of its first tile
  u32 tiles = 0;  // how many it has
  u32 args = 0;   // where its arguments begin, bytes
  LiveRows live = LiveRows::kAll;
};

// Warps of a CTA that compute. Products of one row and of many rows both gain more from registers per thread than from threads:
// spilled values go to L2 and back.
constexpr u32 kConsumerWarps = 8;

// Warps of a megakernel's CTA besides its consumers: the loader, the controller, and idle ones that make up the four warps that
// give registers away. Kernels of single calls have only a loader, except in steps of many rows.
constexpr u32 kHelperWarps = 4;

constexpr u32 kQueueArgsBytes = 1536;  // longer arguments of a call stay in memory

// On-chip memory of a CTA: scratch, of a size that kernels are compiled with
// (KernelTraits); then ring slots, as many as there is room for.
constexpr u32 kRingSlotBytes = 16384;  // slots of codes have room for scales besides
constexpr u32 kMaxRingSlots = 13;
constexpr i32 kItemPanels = 16;            // panels that travel together, at most
constexpr i32 kStreamRows = kFewStepRows;  // a tile of more rows reads its weights itself
constexpr i32 kRowColumns = 128;  // columns of a one-row product that are summed over the warps together

}  // namespace heddle
