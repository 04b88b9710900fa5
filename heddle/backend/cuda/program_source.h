// The device programs of a heddle program: its opcodes as types, a kernel for each of them, and the kernel that executes
// instructions, with a switch over them.
#pragma once

#include <string>

#include "heddle/ir/program.h"

namespace heddle::cuda {

constexpr int kWarps = 16;  // consumer warps of a CTA

// Sources for one architecture ("sm_90a": which primitives they include). They depend on the program's opcodes and the
// dtypes of its weights, not on its sizes.
// Kernel `call` of one opcode: a CTA for each tile of a call.
std::string call_source(const Program& program, u16 opcode, const std::string& arch);
// Kernel `megakernel`, which executes instructions.
std::string megakernel_source(const Program& program, const std::string& arch);

}  // namespace heddle::cuda
