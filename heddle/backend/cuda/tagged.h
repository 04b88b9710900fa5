// What a device needs to know of a program's tagged buffers (device/tagged.cuh).
#pragma once

#include <vector>

#include "heddle/backend/cuda/device/params.h"
#include "heddle/ir/program.h"

namespace heddle::cuda {

struct TaggedTables {
  std::vector<TaggedTensor> tensors;
  std::vector<u32> buffers;       // by tensor
  std::vector<TaggedCall> calls;  // by call
  std::vector<u32> stage_bytes;   // on chip, by call; multiples of 128
  std::vector<TaggedPart> parts;  // by instruction, stream after stream
  i64 word_bytes = 0;             // of all tagged buffers, elements and tags
};

bool has_tagged(const Program& program);

// Throws Error(kUnsupported) where the device cannot carry an edge as the program has it: tiles read a tagged buffer
// whole, and make one run of it.
TaggedTables tagged_tables(const Program& program);

}  // namespace heddle::cuda
