// The text of a device program that holds the tile body of one op: what is compiled to see that a body compiles for a
// GPU, and what it takes there.
#pragma once

#include <span>
#include <string>

#include "heddle/ir/op.h"

namespace heddle::cuda {

// The header with the Block that bodies are compiled against.
inline constexpr const char* kBlockHeader = "heddle/backend/cuda/device/plain_block.cuh";

// The name of an op's argument struct: rms_norm has RmsNorm.
std::string args_struct(const std::string& op);

// A program with the kernel `<op>_tile`. A main op has each prologue of `all` before it and each epilogue behind it, so
// that it is as large as any chain can be.
std::string body_source(const OpSpec& op, std::span<const OpSpec* const> all);

}  // namespace heddle::cuda
