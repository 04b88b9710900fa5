// A program in device memory: its instructions, bound arguments, counters, and compiled kernels. Both GPU executors
// share this class.
#pragma once

#include <vector>

#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/backend/cuda/device/params.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/backend/cuda/runtime/kernel.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/ir/executor/executor.h"

namespace heddle::cuda {

class DeviceProgram {
 public:
  // `streams`: the instructions, stream after stream. A stream belongs to a CTA, or holds a call's tiles. `sources`:
  // the kernels to compile, or to take from options.code where it is given. The primary context of options.device is
  // current.
  DeviceProgram(const Program& program, const Memory& memory, const ExecutorOptions& options,
                std::span<const std::vector<Instruction>> streams, std::span<const CompileRequest> sources);

  const Device& device() const { return device_; }
  ContextHandle context() const { return stream_.context(); }
  const Stream& stream() const { return stream_; }
  // Returns a kernel of source `index`, which may use the dynamic shared memory that params() shares out. Each kernel
  // may reduce that memory: ask for all kernels before params().
  Kernel kernel(size_t index, const std::string& name);
  // Returns a kernel that takes `bytes` of dynamic shared memory, whatever the others do.
  Kernel whole_kernel(size_t index, const std::string& name, i64 bytes);
  KernelParams params(u32 first_epoch, u32 steps) const;
  u32 shared_bytes() const { return shared_bytes_; }

  u32* verdict() const { return verdict_; }                    // for WatchParams; zero before each run
  u32 args_of(size_t call) const { return call_args_[call]; }  // where a call's arguments begin, bytes

  // Waits for the stream and returns what ran since the last call. Throws Error(kDevice) with a dump after a fault.
  RunReport finish(int steps, std::string_view executor);

 private:
  void put_args(const std::vector<BoundCall>& calls);
  // Sets the counters to their state before the first step.
  void clear_edges();
  template <class T>
  std::byte* put(std::span<const T> values);
  i64 spill_bytes() const;

  const Program& program_;
  const Device& device_;
  const u32 scratch_bytes_, slot_bytes_;  // on chip; the kernels are compiled with these numbers
  Stream stream_;
  std::vector<Module> modules_;
  std::vector<DeviceBuffer> owned_;
  KernelParams params_;
  std::vector<u32> call_args_;
  i64 counter_bytes_ = 0;
  u32 shared_bytes_ = 0;
  u32* verdict_ = nullptr;
  size_t num_places_;  // workers; 0: streams are calls
  DeviceBuffer
      report_;  // FaultRecord, tiles {run, dead}, verdict, places; not on the host, since kernels poll and count here
};

}  // namespace heddle::cuda
