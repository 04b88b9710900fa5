// Computes how much memory an engine will take, before anything is loaded.
#pragma once

#include <string>

#include "heddle/engine/planner.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {

struct MemoryNeed {
  i64 weights = 0;     // packed, with vectors and tables
  i64 kv_pages = 0;    // for all sequences at their full length, or what a window leaves of it
  i64 programs = 0;    // upper bound: the working memory of programs of all row classes
  i64 available = -1;  // free bytes of the memory where all this lies; -1: unknown
  i32 sequences = 0, context = 0;
  i32 window = 0;     // positions that a row sees; 0: all
  std::string codes;  // the part of the weights that stays in codes

  i64 total() const { return weights + kv_pages + programs; }
  // Text such as "weights 2.47 GB, …".
  std::string text() const;
};

// `space`: where the executor's buffers lie; null: in the host's memory.
MemoryNeed memory_need(const Planner& planner, i32 sequences, MemorySpace* space);
// Throws Error with the numbers when that is more than there is.
void require_fit(const MemoryNeed& need);

}  // namespace heddle
