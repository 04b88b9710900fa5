// The launches executor: one kernel per call, one CTA per tile. Calls follow one another in stream order, so the kernel ignores the
// instructions' waits and signals. It loads weights before the previous kernel has ended (programmatic dependent launch).
#pragma once

#include "heddle/backend/cuda/device/cta.cuh"
#include "heddle/backend/cuda/device/fault.cuh"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

struct LaunchEdges {
  RingCursor cursor;
  bool was_dead = false;

  void dead() { was_dead = true; }
  void wait() { arch::wait_for_kernel_before(); }
  RingCursor& ring() { return cursor; }
  const StepHost& host(const Tensor& tensor) { return *reinterpret_cast<const StepHost*>(tensor.data); }
  const StepDevice& device(const Tensor& tensor) { return *reinterpret_cast<const StepDevice*>(tensor.data); }
  bool knows_device() const { return false; }
};

static_assert(heddle::Block<Block<LaunchEdges>, Index> && PanelStream<Loader>);

// True if a tile may draw panels through the ring.
template <class Main>
constexpr bool may_stream(const TileCoord& tile) {
  return requires(Loader& loader, const typename Main::Args& args) {
    Main::Body::stream(loader, args, tile);
  } && tile[1] - tile[0] <= kStreamRows;
}

// Runs tile `blockIdx.x` of a call. It is inlined in the kernel, because asynchronous products cannot cross a function's boundary.
template <class Main, class C>
__forceinline__ void run_launch(const KernelParams& p, const CallParams& call) {
  const Cta cta(p);
  arch::let_next_kernel_start();
  C chain{p.args + call.args};
  const Instruction& instruction = p.instructions[call.first + blockIdx.x];
  TileCoord tile = tile_of(instruction);
  const bool live = clamp_to_live(call.live, p.host, tile);
  if (cta.is_loader()) {
    if constexpr (kManyRows) arch::give_registers<kHelperRegisters>();
    if (!live || !cta.loads()) return;
    Loader loader(cta.cursor(), {p.in_flight, p.in_flight, nullptr}, nullptr);
    if (instruction.stream_items == kItemsFromData) arch::wait_for_kernel_before();
    loader.begin(tile[1] - tile[0]);
    stream_chain<Main>(loader, chain, tile);
    loader.finish();
    return;
  }
  if constexpr (kManyRows) arch::take_registers<kConsumerRegisters>();
  if (live) {
    Block<LaunchEdges> block(LaunchEdges{cta.cursor()},
                             may_stream<Main>(tile) ? cta.scratch() : cta.all_scratch(), tile[1] - tile[0]);
    run_chain<Main>(block, chain, tile);
    if (arch::thread() == 0) atomicAdd(&p.tiles[block.edges().was_dead], 1);
  } else {
    arch::wait_for_kernel_before();
    if (arch::thread() == 0) atomicAdd(&p.tiles[1], 1);
  }
  if (arch::thread() == 0) is_stopped(p.fault);
}

}  // namespace heddle::device
