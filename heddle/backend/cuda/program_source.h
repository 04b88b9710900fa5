// The device programs of a heddle program: its opcodes as types, a kernel for each of them, and the kernel that executes
// instructions, with a switch over them.
#pragma once

#include <array>
#include <string>

#include "heddle/ir/program.h"

namespace heddle::cuda {

constexpr int kWarps = 16;  // consumer warps of a CTA that runs one call
// Of one that executes instructions of steps of so many rows. All bodies share its registers: where a thread streams
// weights it wants those of two, since what it spills goes to L2 and back; tensor cores want the warps.
int megakernel_warps(i32 rows);

// Whether a body for GPUs stands beside an op's generic one (x.sm80.cuh); it falls back to that by itself.
bool has_variant(const std::string& op);

// What kernels are made for beside their chains.
struct KernelTraits {
  std::array<bool, kNumDTypes> weights = {};  // dtypes that they multiply with
  i32 rows = 1;                               // of a step at most

  static KernelTraits of(const Program& program);
};

// Sources for one architecture ("sm_90a": which primitives they include). They depend on opcodes and traits, not on
// sizes.
// Kernel `call` of one opcode: a CTA for each tile of a call.
std::string call_source(const Opcode& opcode, const KernelTraits& traits, const std::string& arch);
// Kernel `megakernel`, which executes instructions.
std::string megakernel_source(const Program& program, const std::string& arch);

}  // namespace heddle::cuda
