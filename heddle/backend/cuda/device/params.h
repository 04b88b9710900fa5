// What a kernel is given: the program in device memory. Read by host and device: no standard headers.
#pragma once

#include "heddle/ir/instruction.h"
#include "heddle/ir/row_classes.h"
#include "heddle/ir/step.h"
#include "heddle/ir/tensor.h"
#include "heddle/ir/trace_event.h"

namespace heddle {

// Counters stand on lines of their own: words apart.
constexpr u32 kCounterStride = 32;

// What a worker waited for in vain.
enum class Awaited : u32 { kNothing, kCounter, kVerdict, kPanels };

// The first fault of a run, written once by the device, decoded by the host.
struct FaultRecord {
  Awaited awaited = Awaited::kNothing;
  u32 worker = 0;
  u32 counter = 0, seen = 0, wanted = 0;  // kCounter; of kVerdict the last two
  u32 stop = 0;                           // every wait tests it and leaves
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

// Where a worker ran, and its clock against that of all workers.
struct TraceClocks {
  struct Point {
    u64 ticks = 0, nanoseconds = 0;
  };
  Point begin, end;
  u32 multiprocessor = 0, reserved = 0;
};

// Where a run is traced to. Lanes: consumers of all workers, then their loaders.
struct TraceParams {
  TraceEvent* events = nullptr;   // [lanes, capacity]; null: the run is not traced
  u32 capacity = 0;               // of a lane
  u32* counts = nullptr;          // by lane: events, those that found no room too
  TraceClocks* clocks = nullptr;  // by worker
  u64* marks = nullptr;           // [workers, capacity]: nanoseconds at the end of its consumers' events
};

// What the steps of a run tell the host while it goes on: page-locked memory of the host.
struct HostRing {
  static constexpr u32 kSteps = u32(StepDevice::kHistory);  // as many as a run may have

  u32 stop = 0;                // by the host: the run is to end
  alignas(128) u32 steps = 0;  // by the device: whose tokens are there
  // Tokens follow, i32 [kSteps, sequences]: what each step chose.
  i32* tokens(u32 step, u32 sequences) { return reinterpret_cast<i32*>(this + 1) + u64(step) * sequences; }
  static u64 bytes(u32 sequences) { return sizeof(HostRing) + u64(kSteps) * sequences * sizeof(i32); }
};

// A run that the host watches.
struct WatchParams {
  static constexpr u32 kEnds = 8;

  HostRing* ring = nullptr;     // null: nobody watches
  const i32* chosen = nullptr;  // by sequence of the step record
  u32 worker = 0;               // whose tile chooses; it says whether the run goes on
  i32 ends[kEnds] = {};         // tokens that end the run
  u32 num_ends = 0;
  u32* verdict = nullptr;  // 2 x steps that are done, + 1 where the last of them ends the run
};

// Memory for what does not fit on chip.
struct SpillRoom {
  u8* memory = nullptr;
  i64 bytes = 0;  // of each multiprocessor
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
  u32 ring_slots = 0;         // of kRingSlotBytes
  u32 in_flight = 8;          // slots whose copies are under way at most
  u32 in_flight_waiting = 2;  // the same while consumers wait for other workers
  u32 first_epoch = 1, steps = 1;
  u32 spin_limit = 0;   // microseconds a wait may last
  u64 panel_limit = 0;  // the same in ticks of a multiprocessor
  TraceParams trace;
  WatchParams watch;
};

// One call of the launches executor.
struct CallParams {
  u32 first = 0;  // index of the instruction of its first tile
  u32 args = 0;   // where its arguments begin, bytes
  LiveRows live = LiveRows::kAll;
};

// Warps of a CTA that compute. Products of one row and of many both want the registers of a thread rather than threads:
// what is spilled goes to L2 and back.
constexpr u32 kConsumerWarps = 8;

// Warps of a megakernel's CTA beside its consumers: the loader, the controller, and as many idle ones as make the four
// that registers are taken from. Those of a call have a loader alone, but in steps of many rows.
constexpr u32 kHelperWarps = 4;

constexpr u32 kQueueArgsBytes = 1536;  // of a call's arguments on chip; longer ones stay in memory

// On-chip memory of a CTA: scratch, of a size that kernels are compiled with
// (KernelTraits); then ring slots, as many as there is room for.
constexpr u32 kRingSlotBytes = 16384;
constexpr u32 kMaxRingSlots = 13;
constexpr i32 kStreamRows = kFewStepRows;  // a tile of more rows reads its weights itself
constexpr i32 kRowColumns = 128;           // of a product of one row, whose sums over warps are made at once

}  // namespace heddle
