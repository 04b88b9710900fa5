// Writes the device programs of a heddle program: its opcodes as types, a kernel for each of them, and the kernel
// that executes instructions, with a switch over the opcodes.
#pragma once

#include <array>
#include <span>
#include <string>

#include "heddle/backend/cuda/device/params.h"
#include "heddle/backend/cuda/program/known_args.h"
#include "heddle/ir/program/program.h"

namespace heddle::cuda {

// The name of a type or constant of the device sources: "rms_norm" is "RmsNorm".
std::string pascal_case(const std::string& words);

// Says whether an op has a body for GPUs (x.sm80.cuh) next to its generic one. Such a body falls back to the generic
// one by itself.
bool has_variant(const std::string& op);

// The properties, besides their chains, that kernels are made for.
struct KernelTraits {
  std::array<bool, kNumDTypes> types = {};  // dtypes that they multiply with
  bool floats = true;                       // some of their weights are floats, not codes
  i32 rows = 1;                             // the most rows of a step
  i32 warps = i32(kConsumerWarps);          // warps of a CTA that compute
  u32 scratch_bytes = 56 << 10;             // on chip, for each CTA, besides its ring
  u32 slot_bytes = kRingSlotBytes;          // a slot of the ring has so many
  bool has_ring = true;                     // panels come through a ring
  bool draws = false;                       // and all products take theirs from there
  bool has_slabs = true;                    // products may take slabs, for which fragments leave room on chip
  bool own_kernels = false;  // each opcode has a kernel to itself, also where there are several

  static KernelTraits of(const Program& program, const std::string& arch);
  // The traits of a kernel for calls like this node alone.
  KernelTraits of(const Node& node) const;
};

// The functions below write sources. These depend on opcodes with their configurations, on traits, and on sizes as far as those are
// known; of the architecture, traits alone tell.

// Writes kernel `call` of one opcode: a CTA of `call_threads` threads for each tile of a call.
std::string call_source(const Opcode& opcode, const KernelTraits& traits, const KnownArgs& known = {});
// Writes a kernel `k0_call`, `k1_call`, ... for each opcode, of which nothing is known: headers and functions that they
// share are compiled once.
std::string calls_source(std::span<const Opcode> opcodes, KernelTraits traits);
constexpr size_t kMostChainMaps = 5;  // tensor maps that a whole kernel of a chain has, at most
// Writes kernel `call` of one opcode as the whole kernel of its main part (OpSpec::chain_kernel), as `plan` says.
std::string chain_kernel_source(const Opcode& opcode, const KernelTraits& traits, const KnownArgs& known,
                                const Part& main, const KernelPlan& plan);
// Returns the threads of a CTA for steps of at most `rows` rows.
constexpr u32 call_threads(i32 rows, i32 warps = i32(kConsumerWarps)) {
  return 32 * (u32(warps) + (rows > kStreamRows ? kHelperWarps : 1));
}
// Writes kernel `standalone` of one op, for calls with such arguments: a CTA of `kStandaloneThreads` threads for each
// tile. A `config` without values is the op's default.
std::string standalone_source(const OpSpec& op, const std::byte* args, Knowledge knowledge,
                              const OpConfig& config = {});
constexpr u32 kStandaloneThreads = 32 * kConsumerWarps;
// Says whether that kernel runs the op's variant. Variants of ops with weights are made for a ring; without one, the
// generic body multiplies.
bool runs_variant(const OpSpec& op);
bool takes_weight(const OpSpec& op);
bool takes_matrix(const OpSpec& op);
// Writes kernel `megakernel`, which executes instructions. A kernel that knows sizes executes those of this program
// alone.
std::string megakernel_source(const Program& program, const std::string& arch,
                              Knowledge knowledge = Knowledge::kNothing);

}  // namespace heddle::cuda
