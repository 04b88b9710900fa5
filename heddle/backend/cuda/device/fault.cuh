// Ends a run that cannot go on. Every wait has a limit: for counters, for the verdict of a watched run, for
// panels. The first fault is recorded and every waiting thread leaves. Consumers that give up on panels
// compute with whatever the slots hold and leave together at the next edge, because one that left alone would
// hang the others' barriers. The loader and the controller leave after them. On the host, fault_report.cpp
// says where every worker stood.
#pragma once

#include "heddle/backend/cuda/device/ring_wait.cuh"
#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

inline void report_fault(FaultRecord* record, const FaultRecord& fault) {
  if (atomicCAS(reinterpret_cast<u32*>(&record->awaited), u32(Awaited::kNothing), u32(fault.awaited)) == 0) {
    record->worker = blockIdx.x;
    record->counter = fault.counter, record->seen = fault.seen, record->wanted = fault.wanted;
  }
  __threadfence();
  atomicExch(&record->stop, 1u);
}

// True if the run was stopped, or must stop because consumers gave up. One thread calls it.
inline bool is_stopped(FaultRecord* record) {
  if (panel_limit() == 0) report_fault(record, {.awaited = Awaited::kPanels});
  return arch::load_relaxed(&record->stop) != 0;
}

// Limits a wait.
class Patience {
 public:
  explicit Patience(const KernelParams& p) : p_(p) {}

  // False: the run was stopped, or this call stopped it with this fault.
  bool once_more(const FaultRecord& fault) {
    if (++turns_ % 256 != 0) return true;
    if (begin_ == 0) begin_ = arch::nanoseconds();
    if (arch::load_relaxed(&p_.fault->stop)) return false;
    if (arch::nanoseconds() - begin_ <= u64(p_.spin_limit) * 1000) return true;
    report_fault(p_.fault, fault);
    return false;
  }

 private:
  const KernelParams& p_;
  u32 turns_ = 0;
  u64 begin_ = 0;
};

}  // namespace heddle::device
