// Writes the step record from what sequences request, and refuses a record that a program must not run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/ir/attention_plan.h"

namespace heddle {

// One sequence's part of a step.
struct RecordEntry {
  i32 start = 0;  // positions that are already in its pages
  std::span<const i32> tokens;
  std::span<const i32> pages;  // -1: released, see validate_record
  std::span<const u32> seen;   // bits of the tokens that it has seen
  StepSequence sampling;       // only its sampling fields
  u32 draws = 0;
  i32 wanted = 0;  // it wants the logits of its last `wanted` rows
};

// Memory of both parts of a record for a shape.
class StepRecord {
 public:
  explicit StepRecord(const StepShape& shape);
  StepHost& host() { return *reinterpret_cast<StepHost*>(host_.data()); }
  StepDevice& device() { return *reinterpret_cast<StepDevice*>(device_.data()); }
  std::byte* host_bytes() { return host_.data(); }
  std::byte* device_bytes() { return device_.data(); }

  void write(std::span<const RecordEntry> entries, u32 num_pages, const AttentionCut& reach);

 private:
  StepShape shape_;
  std::vector<std::byte> host_, device_;
};

// Throws Error with the values: rows, sequences or wanted rows beyond the shape; a token outside the
// vocabulary; a page out of range or with two writers; positions beyond the page table. Pages that lie wholly
// before the range of `reach` may be missing: -1.
void validate_record(const StepHost& host, const StepDevice& device, u32 num_pages,
                     const AttentionCut& reach);

}  // namespace heddle
