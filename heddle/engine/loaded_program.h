// Programs in memory: what all programs of an engine share, and what each has of its own.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/engine/options.h"
#include "heddle/engine/record.h"
#include "heddle/engine/storage.h"
#include "heddle/engine/weights.h"

namespace heddle {

struct SharedMemory {
  // Loads the weights. Throws Error where the memory that is free does not hold what the options ask for.
  SharedMemory(const Planner& planner, const EngineOptions& options);
  // Puts what a sequence's slot says of scores where `sample` reads it.
  void set_edits(u32 slot, std::span<const float> edits);
  void set_mask(u32 slot, std::span<const u32> mask);

  MemorySpace* space = nullptr;  // holds the executor's buffers; null: the host's
  std::optional<WeightStore> weights;
  std::map<std::string, Storage> kv;  // by buffer name
  size_t kv_bytes = 0;
  std::string weights_note;  // CodedWeights::note()
};

// A program with its memory and its executor.
class LoadedProgram {
 public:
  LoadedProgram(Program made, const EngineOptions& options, const SharedMemory& shared);

  const Program& program() const { return program_; }
  StepRecord& record() { return record_; }
  // Runs what the record says, and brings back what the steps put in it.
  RunReport run(int steps, const StepWatch* watch);
  void read_logits(size_t first_row, std::span<float> rows) const;
  std::vector<std::byte> buffer(u32 index) const;
  Trace trace() const { return executor_->trace(); }
  std::vector<std::string> bodies() const { return executor_->bodies(); }

 private:
  std::byte* place(const ProgramBuffer& buffer, const SharedMemory& shared);

  Program program_;
  StepRecord record_;
  MemorySpace* space_;
  std::vector<Storage> own_;     // arena first, then buffers that no other program shares
  std::optional<Storage> host_;  // the record's parts in the executor's memory, where that is not the host's
  std::optional<Storage> state_;
  Memory memory_;
  std::unique_ptr<Executor> executor_;
  u32 logits_ = kNoBuffer;
};

}  // namespace heddle
