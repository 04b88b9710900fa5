// The device programs of a heddle program: its opcodes as types, a kernel for each of them, and the kernel that executes
// instructions, with a switch over them.
#pragma once

#include <array>
#include <string>

#include "heddle/backend/cuda/device/params.h"
#include "heddle/backend/cuda/program/known_args.h"
#include "heddle/ir/program.h"

namespace heddle::cuda {

// Whether a body for GPUs stands beside an op's generic one (x.sm80.cuh); it falls back to that by itself.
bool has_variant(const std::string& op);

// What kernels are made for beside their chains.
struct KernelTraits {
  std::array<bool, kNumDTypes> types = {};  // dtypes that they multiply with
  i32 rows = 1;                             // of a step at most
  i32 warps = i32(kConsumerWarps);          // of a CTA that compute
  u32 scratch_bytes = 56 << 10;             // of a CTA on chip, beside its ring
  bool has_ring = true;                     // whether panels come through a ring

  static KernelTraits of(const Program& program, const std::string& arch);
};

// Sources for one architecture ("sm_90a": which primitives they include). They depend on opcodes and traits, and on
// sizes as far as those are known.
// Kernel `call` of one opcode: a CTA of `call_threads` for each tile of a call.
std::string call_source(const Opcode& opcode, const KernelTraits& traits, const std::string& arch,
                        const KnownArgs& known = {});
// Of steps of at most so many rows.
constexpr u32 call_threads(i32 rows, i32 warps = i32(kConsumerWarps)) {
  return 32 * (u32(warps) + (rows > kStreamRows ? kHelperWarps : 1));
}
// Kernel `standalone` of one op, for calls with such arguments: a CTA of `kStandaloneThreads` for each tile.
std::string standalone_source(const OpSpec& op, const std::byte* args, const std::string& arch,
                              Knowledge knowledge);
constexpr u32 kStandaloneThreads = 32 * kConsumerWarps;
// Which body it runs. Variants of ops with weights are made for a ring: without one the generic body multiplies.
bool runs_variant(const OpSpec& op);
bool takes_weight(const OpSpec& op);
// Kernel `megakernel`, which executes instructions; one that knows sizes those of this program alone.
std::string megakernel_source(const Program& program, const std::string& arch,
                              Knowledge knowledge = Knowledge::kNothing);

}  // namespace heddle::cuda
