// The same steps of a model at one position, again and again: what is profiled and measured.
#pragma once

#include <vector>

#include "heddle/engine/engine.h"

namespace heddle {

class DecodeRun {
 public:
  // A sequence with `position` tokens in its pages. A step takes `rows` more: one, and its choice goes on, or a chunk.
  DecodeRun(Engine& engine, i32 position, i32 rows = 1);
  ~DecodeRun();
  DecodeRun(const DecodeRun&) = delete;
  DecodeRun& operator=(const DecodeRun&) = delete;

  // One call of `steps` steps from the position on; seconds. A chunk is one step.
  double run(i32 steps, bool logits = false);
  // Of the last run.
  const StepResult& result() const { return result_; }

 private:
  void go_to_position();

  Engine& engine_;
  i32 position_;
  std::vector<i32> tokens_;  // of a step
  SequenceId sequence_;
  StepResult result_;
};

// Instructions of the program's longest stream: what a worker notes of a traced step.
u32 longest_stream(const Program& program);

}  // namespace heddle
