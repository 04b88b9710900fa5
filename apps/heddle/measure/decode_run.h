// Repeats the same steps of a model at one position, for profiles and measurements.
#pragma once

#include <vector>

#include "heddle/engine/engine.h"

namespace heddle {

class DecodeRun {
 public:
  // Opens a sequence with `position` tokens in its pages. A step takes `rows` more: one row, whose choice is
  // the next token, or a chunk of a prompt.
  DecodeRun(Engine& engine, i32 position, i32 rows = 1);
  ~DecodeRun();
  DecodeRun(const DecodeRun&) = delete;
  DecodeRun& operator=(const DecodeRun&) = delete;

  // Runs one call of `steps` steps from the position on and returns seconds. A chunk is one step.
  double run(i32 steps, bool logits = false);
  // The result of the last run.
  const StepResult& result() const { return result_; }

 private:
  void go_to_position();

  Engine& engine_;
  i32 position_;
  std::vector<i32> tokens_;  // tokens of a step
  SequenceId sequence_;
  StepResult result_;
};

// Length of the program's longest stream: the most instructions that a worker records in a traced step.
u32 longest_stream(const Program& program);

}  // namespace heddle
