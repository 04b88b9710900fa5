// The megakernel: one persistent CTA per worker, which executes the packed instructions of its stream, step after step. A
// controller warp fetches instructions and their arguments into a queue. The loader walks the same instructions and fills the
// weight ring across their borders. Consumers wait, run the bodies and signal.
//
// Edges: a tile waits for tiles of other SMs by counters in memory. Inside an SM it needs no wait, because the stream runs in
// order. A tile must finish reading its queue slot before its last barrier; after that the slot may be reused.
//
// A watched run tells the host the tokens of each step while the next step goes on, and ends with a token or when the host asks,
// all workers with the same step. The worker whose tile chooses tokens writes them to a ring in the host's memory and gives
// the verdict that all others wait for at the end of a step. Its controller warp speaks with the host. The loader goes on to
// the next step before the verdict, so that the ring is not empty at the beginning of each.
#pragma once

#include "heddle/backend/cuda/device/cta.cuh"
#include "heddle/backend/cuda/device/fault.cuh"
#include "heddle/backend/cuda/device/trace.cuh"
#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

constexpr u32 kQueueSlots = 8;  // instructions fetched ahead
constexpr u32 kHostCopyBytes = 2048;
constexpr u32 kDeviceCopyBytes = 512;
constexpr u32 kControllerThread = kConsumers + 32;
// The consumer thread that keeps notes for later, while the first one speaks with other workers.
constexpr u32 kNoteThread = 32;
// The consumer thread that tests at each wait whether the run was stopped.
constexpr u32 kStopThread = 64;

struct QueueSlot {
  Instruction instruction;
  TileCoord tile;  // its live rows
  const u8* args;
  u32 index;  // in the worker's stream
  u32 epoch;
  bool live;
  alignas(16) u8 copied[kQueueArgsBytes];
};

// Instructions on their way from the controller to the loader and the consumers.
struct Queue {
  QueueSlot slots[kQueueSlots];
  u64 full[kQueueSlots], empty[kQueueSlots];

  void init() {
    for (u32 i = 0; i < kQueueSlots; ++i) {
      arch::init_barrier(&full[i], 32);
      arch::init_barrier(&empty[i], (kEveryReaderArrives ? kConsumers : 1) + arch::kLoaderThreads);
    }
  }
};

inline Queue& queue() {
  __shared__ Queue all;
  return all;
}

// A place in the queue, for the controller and the loader, which stop when the consumers have left.
struct QueueCursor {
  const volatile u32* stop;
  u32 at = 0, phase = 0;

  // False: the consumers have left. Until then there is always an instruction for them, so that they leave together at
  // its waits, and there are always panels.
  bool wait(u64* barrier, u32 parity) const {
    while (!arch::barrier_passed(barrier, parity))
      if (arch::look_at(*stop)) return false;
    return true;
  }
  const QueueSlot* front() const { return wait(&queue().full[at], phase) ? &queue().slots[at] : nullptr; }
  void release() { arch::arrive(&queue().empty[at]); }
  void advance() {
    if (++at == kQueueSlots) at = 0, phase ^= 1;
  }
};

// The place in the queue of a warp of consumers. It lies on chip: a body needs the instruction's address from begin to end, and a
// register that lives so long is spilled. A spilled word is read from L2, because each wait for other workers empties the L1.
class ConsumerPlace {
 public:
  static void init() { count() = ~0u; }
  static const QueueSlot& slot() { return queue().slots[count() % kQueueSlots]; }
  // The next instruction, once it is there. By all lanes.
  static const QueueSlot& next() {
    const u32 next = count() + 1, at = next % kQueueSlots;
    __syncwarp();
    if (arch::thread() % 32 == 0) count() = next;
    while (!arch::barrier_passed(&queue().full[at], next / kQueueSlots & 1)) {
    }
    __syncwarp();
    return queue().slots[at];
  }
  // One consumer thread calls it.
  static void release() { arch::arrive(&queue().empty[count() % kQueueSlots]); }

 private:
  // The number of instructions before this one.
  static volatile u32& count() {
    __shared__ u32 all[kWarps];
    return all[arch::thread() / 32];
  }
};

// Fetches one instruction and its arguments. All lanes of the controller call it.
inline void fetch(const KernelParams& p, u32 index, u32 epoch, QueueSlot& slot) {
  const u32 lane = arch::thread() % 32;
  const Instruction& from = p.instructions[p.stream_begin[blockIdx.x] + index];
  if (lane < sizeof(Instruction) / 4)
    reinterpret_cast<u32*>(&slot.instruction)[lane] = reinterpret_cast<const u32*>(&from)[lane];
  slot.index = index, slot.epoch = epoch;
  __syncwarp();
  if (slot.instruction.opcode >= kNopOpcode) return;
  if (lane == 0) {
    slot.tile = tile_of(slot.instruction);
    slot.live = clamp_to_live(p.call_live[slot.instruction.call], p.host, slot.tile);
  }
  const u32 call = slot.instruction.call, begin = p.call_args[call], bytes = p.call_args[call + 1] - begin;
  const bool fits = bytes <= kQueueArgsBytes;
  for (u32 i = lane; fits && i < bytes / 16; i += 32)
    reinterpret_cast<uint4*>(slot.copied)[i] = reinterpret_cast<const uint4*>(p.args + begin)[i];
  slot.args = fits ? slot.copied : p.args + begin;
}

constexpr u32 kStay = 0, kLeaveForFault = 1, kLeaveAtEnd = 2;

// The consumers' state from one instruction to the next. It lies on chip: in registers it would leave too few to the bodies, which
// would spill.
struct ConsumerState {
  u32 ring_slot = 0, ring_phase = 0;
  u32 run = 0, dead = 0;  // tiles
  u32 was_dead = 0;       // 1: this tile
  u32 waits = 0;          // not 0: waits for other workers
  u32 ready = 0;          // live instructions so far whose inputs say what the loader draws
  u32 leaves = kStay;     // how all consumers leave at the same barrier
  u32 stopped = 0;        // 1: the run was stopped, as the controller has seen
  u32 steps = 0;          // steps that are done and whose verdict is known
  u32 ends = 0;           // 1: a token or the host ends the run
  u32 device_epoch = 0;   // epoch of the copy of the record's device part on chip
};

inline volatile ConsumerState& consumer_state() {
  __shared__ ConsumerState state;
  return state;
}

// True if this worker speaks with the host.
inline bool is_watched(const KernelParams& p) {
  return p.watch.ring && blockIdx.x == p.watch.worker;
}

// The controller's part of a watched run. The controller does it because a round trip to the host's memory takes microseconds.
struct HostLine {
  const KernelParams& p;
  u32 told = 0;  // steps

  // Tells the host how many steps have tokens in its ring: consumers wrote the tokens before they raised `steps`.
  void tell() {
    if (!is_watched(p) || arch::thread() % 32 != 0) return;
    const u32 steps = arch::look_at(consumer_state().steps);
    if (steps == told) return;
    __threadfence_system();
    *reinterpret_cast<volatile u32*>(&p.watch.ring->steps) = told = steps;
  }
  // Asks the host before the end of a step whether the run should end.
  void ask() const {
    if (is_watched(p) && arch::thread() % 32 == 0 &&
        *reinterpret_cast<volatile u32*>(&p.watch.ring->stop) != 0)
      consumer_state().ends = 1;
  }
};

inline void fetch_all(const KernelParams& p, HostLine& host) {
  QueueCursor cursor{&consumer_state().leaves};
  for (u32 step = 0; step < p.steps; ++step)
    for (u32 index = 0;; ++index) {
      if (!cursor.wait(&queue().empty[cursor.at], cursor.phase ^ 1)) return;
      host.tell();
      QueueSlot& slot = queue().slots[cursor.at];
      const bool stopped = arch::thread() % 32 == 0 && arch::load_relaxed(&p.fault->stop) != 0;
      fetch(p, index, p.first_epoch + step, slot);
      if (stopped) consumer_state().stopped = 1;
      __syncwarp();
      const bool ends = slot.instruction.opcode == kEndOpcode;
      if (ends) host.ask();
      arch::arrive(&queue().full[cursor.at]);
      cursor.advance();
      if (ends) break;
    }
}
inline void run_controller(const KernelParams& p) {
  HostLine host{p};
  fetch_all(p, host);
  while (!arch::look_at(consumer_state().leaves)) arch::idle();
  host.tell();
  if (arch::thread() % 32 == 0) is_stopped(p.fault);  // consumers that gave up on panels leave it to say so
}

// Waits until the consumers have `wanted` inputs that say which panels are drawn. False: the consumers have left.
inline bool wait_for_inputs(u32 wanted) {
  while (arch::look_at(consumer_state().ready) < wanted)
    if (arch::idle(), arch::look_at(consumer_state().leaves)) return false;
  __threadfence_block();
  return true;
}

// Draws the panels of all steps. Returns what the loader waited for when the consumers left; kNothing: it drew all. It goes on to
// the next step before it is known whether there is one: else the ring would be empty at the beginning of each step.
inline LoaderWaits draw_all(const KernelParams& p, Loader& loader) {
  QueueCursor cursor{&consumer_state().leaves};
  const Tracer tracer(p.trace, TraceRole::kLoader);
  u32 by_data = 0;
  for (u32 step = 0; step < p.steps;) {
    const QueueSlot* slot = cursor.front();
    if (!slot) return LoaderWaits::kInstruction;
    p.places[blockIdx.x].loader = {slot->index, slot->epoch};
    const Instruction& instruction = slot->instruction;
    if (instruction.opcode == kEndOpcode) {
      ++step;
    } else if (instruction.opcode != kNopOpcode && slot->live) {
      tracer.fetched(slot->index, slot->epoch);
      if (instruction.stream_items == kItemsFromData && !wait_for_inputs(++by_data))
        return LoaderWaits::kInputs;
      tracer.ready();
      loader.begin(slot->tile[1] - slot->tile[0]);
      stream_opcode(instruction.opcode, slot->args, loader, slot->tile);
      if (!loader.finish()) return LoaderWaits::kRoom;
      tracer.computed();
      tracer.done();
    }
    cursor.release();
    cursor.advance();
  }
  return LoaderWaits::kNothing;
}
inline void run_loader(const KernelParams& p, const RingCursor& ring) {
  Loader loader(ring, {p.in_flight, p.in_flight_waiting, &consumer_state().waits}, &consumer_state().leaves);
  p.places[blockIdx.x].loader_waits = draw_all(p, loader);
  loader.land();
}

// The waits and signals of one instruction.
class ProgramEdges {
 public:
  ProgramEdges(const KernelParams& p, RingCursor ring) : p_(p), ring_(ring) {
    ring_.slot = consumer_state().ring_slot, ring_.phase = consumer_state().ring_phase;
  }

  RingCursor& ring() { return ring_; }
  static void dead() {
    if (arch::thread() == kNoteThread) consumer_state().was_dead = 1;
  }
  const StepHost& host(const Tensor& tensor) {
    return *reinterpret_cast<const StepHost*>(host_fits(p_) ? host_copy() : tensor.data);
  }
  // The record's host part is constant during a launch. It lies on chip if it fits.
  static bool host_fits(const KernelParams& p) { return p.host_bytes > 0 && p.host_bytes <= kHostCopyBytes; }
  static u8* host_copy() {
    __shared__ __align__(16) u8 bytes[kHostCopyBytes];
    return bytes;
  }

  // The begin of the record's device part changes only at the end of a step, so its first reader in a step copies it to the chip. All
  // consumers call it together.
  const StepDevice& device(const Tensor& tensor) {
    const auto& shape = reinterpret_cast<const StepHost*>(host_copy())->shape;
    const u32 bytes = host_fits(p_) ? u32(StepDevice::sampled_offset(shape)) : 0;
    if (bytes == 0 || bytes > kDeviceCopyBytes) return *reinterpret_cast<const StepDevice*>(tensor.data);
    if (!knows_device()) {
      sync_consumers();  // no thread still reads the previous step's copy or its epoch
      if (arch::thread() == 0) consumer_state().device_epoch = slot().epoch;
      for (u32 i = arch::thread(); i < bytes / 4; i += kConsumers)
        reinterpret_cast<u32*>(device_copy())[i] = reinterpret_cast<const u32*>(tensor.data)[i];
      sync_consumers();
    }
    return *reinterpret_cast<const StepDevice*>(device_copy());
  }
  bool knows_device() const { return consumer_state().device_epoch == slot().epoch; }
  static u8* device_copy() {
    __shared__ __align__(16) u8 bytes[kDeviceCopyBytes];
    return bytes;
  }

  // Each wait has a thread that polls it. The stop flag is read on chip: reading it from memory here would cost a round trip even if
  // all waits have passed already.
  void wait() {
    const u32 i = arch::thread();
    if (i == 0) consumer_state().waits = 1;
    const bool says_what_is_drawn = slot().live && slot().instruction.stream_items == kItemsFromData;
    leave_together(i < kMaxWaits ? !wait_for(i) : i == kStopThread && is_called_off());
    if (i != 0) return;
    tracer().ready();
    consumer_state().waits = 0;
    if (says_what_is_drawn) {
      __threadfence_block();
      arch::show(consumer_state().ready, consumer_state().ready + 1);
    }
  }
  // Ends a step. False: it was the last.
  bool end_step() {
    const u32 step = slot().epoch - p_.first_epoch + 1;
    bool last = step == p_.steps, stopped = false;
    if (is_watched(p_)) look_for_end();
    if (arch::thread() == 0) {
      stopped = is_called_off();
      if (p_.watch.ring && !last && !stopped) {
        if (is_watched(p_)) {
          last = consumer_state().ends != 0;
          arch::add_release(p_.watch.verdict, last ? 3 : 2);
        } else {
          stopped = !spin([&] { return arch::load_acquire(p_.watch.verdict); },
                          {.awaited = Awaited::kVerdict, .wanted = 2 * step});
          last = arch::load_relaxed(p_.watch.verdict) == 2 * step + 1;
        }
      }
    }
    // Other workers go on meanwhile: a write to the host takes microseconds.
    if (is_watched(p_)) tell_tokens(step);
    if (arch::thread() == 0) {
      if (!stopped) arch::show(consumer_state().steps, step);
      __threadfence_block();
      if (stopped || last) arch::show(consumer_state().leaves, stopped ? kLeaveForFault : kLeaveAtEnd);
    }
    sync_consumers();
    if (consumer_state().leaves == kStay) return sync_consumers(), true;
    if (consumer_state().leaves == kLeaveForFault) arch::exit_thread();
    return false;
  }
  // Ends a tile.
  void signal() {
    const u32 i = arch::thread();
    if (i == 0)
      consumer_state().waits = 1;  // the tile's own output is a message that must not queue after weights
    if (i == kNoteThread) note_tile();
    const Signal signal = slot().instruction.signal;
    const EdgeKind kind = slot().instruction.signal_kind();
    sync_consumers();
    if (i != 0 || signal.counter == kNoCounter || kind == EdgeKind::kInSm) return;
    arch::add_release(p_.counters + u64(signal.counter) * kCounterStride, signal.amount);
  }
  Tracer tracer() const { return {p_.trace, TraceRole::kConsumers}; }

 private:
  void note_tile() const {
    consumer_state().ring_slot = ring_.slot, consumer_state().ring_phase = ring_.phase;
    const bool dead = consumer_state().was_dead;
    consumer_state().was_dead = 0;
    if (slot().instruction.opcode < kNopOpcode) {
      volatile u32& tiles = dead ? consumer_state().dead : consumer_state().run;
      tiles = tiles + 1;
    }
    tracer().computed(dead);
  }
  static bool is_called_off() { return panel_limit() == 0 || consumer_state().stopped; }
  // Another barrier lies between two calls, so that a late thread still reads what this call found.
  static void leave_together(bool stopped) {
    if (stopped) arch::show(consumer_state().leaves, kLeaveForFault);
    sync_consumers();
    if (consumer_state().leaves != kStay) arch::exit_thread();
  }
  // Sets `ends` if a token that the step chose ends the run. All consumers call this and the next function together.
  void look_for_end() {
    const WatchParams& watch = p_.watch;
    for (u32 s = arch::thread(); s < u32(p_.host->sequences); s += kConsumers)
      for (u32 e = 0; e < watch.num_ends; ++e)
        if (chosen(s) == watch.ends[e]) consumer_state().ends = 1;
    sync_consumers();
  }
  // Writes the tokens that the step chose to the host.
  void tell_tokens(u32 step) {
    const u32 sequences = u32(p_.host->sequences);
    for (u32 s = arch::thread(); s < sequences; s += kConsumers)
      reinterpret_cast<volatile i32*>(p_.watch.ring->tokens(step - 1, sequences))[s] = chosen(s);
    sync_consumers();
  }
  i32 chosen(u32 sequence) const { return reinterpret_cast<const volatile i32*>(p_.watch.chosen)[sequence]; }
  // False: the run was stopped. Outputs of this worker itself need no wait.
  bool wait_for(u32 i) { return slot().instruction.wait_kind(int(i)) == EdgeKind::kInSm || poll(i); }
  bool poll(u32 i) {
    const Wait& wait = slot().instruction.waits[i];
    if (wait.counter == kNoCounter) return true;
    const u32 wanted = wanted_count(wait.target, slot().epoch, slot().instruction.waits_previous(int(i)));
    const u32* word = p_.counters + u64(wait.counter) * kCounterStride;
    return spin([=] { return arch::load_acquire(word); },
                {.awaited = Awaited::kCounter, .counter = wait.counter, .wanted = wanted});
  }
  template <class Look>
  bool spin(Look&& look, FaultRecord fault) {
    for (Patience patience(p_);;) {
      fault.seen = look();
      if (reached(fault.seen, fault.wanted)) return true;
      if (!patience.once_more(fault)) return false;
    }
  }

  static const QueueSlot& slot() { return ConsumerPlace::slot(); }

  const KernelParams& p_;
  RingCursor ring_;
};

// False: the run is over.
__forceinline__ bool consume(const KernelParams& p, const Cta& cta, const QueueSlot& slot) {
  Block<ProgramEdges> block(ProgramEdges(p, cta.cursor()), cta.scratch(), slot.tile[1] - slot.tile[0]);
  const u32 opcode = slot.instruction.opcode;
  if (arch::thread() == 0) block.edges().tracer().fetched(slot.index, slot.epoch);
  if (arch::thread() == kNoteThread) p.places[blockIdx.x].consumers = {slot.index, slot.epoch};
  if (opcode == kEndOpcode) return block.edges().end_step();
  if (opcode < kNopOpcode && slot.live)
    run_opcode(opcode, slot.args, block, slot.tile);
  else
    block.dead(), block.inputs();
  block.edges().signal();
  if (arch::thread() == 0) block.edges().tracer().done();
  return true;
}

__forceinline__ void run_consumers(const KernelParams& p, const Cta& cta) {
  while (consume(p, cta, ConsumerPlace::next()))
    if (kEveryReaderArrives || arch::thread() == kNoteThread) ConsumerPlace::release();
  if (arch::thread() != kNoteThread) return;
  atomicAdd(&p.tiles[0], consumer_state().run), atomicAdd(&p.tiles[1], consumer_state().dead);
  Tracer(p.trace, TraceRole::kConsumers).close();
}

__forceinline__ void run_megakernel(const KernelParams& p) {
  if (arch::thread() < kConsumers && arch::thread() % 32 == 0) ConsumerPlace::init();
  if (arch::thread() == 0) {
    queue().init();
    volatile ConsumerState& state = consumer_state();
    state.ring_slot = state.ring_phase = state.run = state.dead = state.was_dead = 0;
    state.waits = state.ready = state.leaves = state.stopped = state.steps = state.ends = 0;
    state.device_epoch = p.first_epoch - 1;
    Tracer(p.trace, TraceRole::kConsumers).open();
  }
  if (ProgramEdges::host_fits(p))
    for (u32 i = arch::thread(); i < p.host_bytes / 4; i += blockDim.x)
      reinterpret_cast<u32*>(ProgramEdges::host_copy())[i] = reinterpret_cast<const u32*>(p.host)[i];
  const Cta cta(p);  // has a barrier, after which all threads see what was written above
  if (!cta.is_loader()) {
    arch::take_registers<kConsumerRegisters>();
    return run_consumers(p, cta);
  }
  arch::give_registers<kHelperRegisters>();
  if (arch::thread() / 32 == kControllerThread / 32)
    run_controller(p);
  else if (cta.loads())
    run_loader(p, cta.cursor());
}

}  // namespace heddle::device
