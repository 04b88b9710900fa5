// Compiles many bodies in a few texts, so that the headers and functions that they share are compiled once. Their kernels
// are not those of bodies that are compiled one by one: this only finds out whether bodies compile.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/ir/op.h"
#include "heddle/ir/program/program.h"

namespace heddle::cuda {

// A body of a chain, or a whole kernel.
struct WantedBody {
  CompileRequest alone;  // by itself
  Opcode opcode;
  i32 rows = 1;
  // A whole kernel has these instead of an opcode.
  const OpSpec* kernel_of = nullptr;
  KernelPlan plan = {};
  std::vector<std::byte> args = {};
};

// Multiplies with every wide float, in steps of at most `rows` rows.
KernelTraits traits_for(i32 rows);

// Compiles all; their options are the same. Results are in the order of the bodies: what a body's own kernels take, its
// share of the time, and no code. Bodies of a text that does not compile are compiled one by one, so that a message names
// the one at fault.
std::vector<Result<Compiled>> compile_together(std::span<const WantedBody> bodies);

}  // namespace heddle::cuda
