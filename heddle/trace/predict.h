// Predicts a run of a program from a model of costs. It gives the same events as a traced run, and the path
// that decides the length of a step. Workers prefetch weights as far as their ring allows. The model's bytes
// per second account for shared memory; nothing else is contended for.
#pragma once

#include <vector>

#include "heddle/ir/program/cost.h"
#include "heddle/ir/trace.h"

namespace heddle {

// A tile of the chain that decides the length of a step.
struct PathTile {
  u32 worker = 0, instruction = 0;
  bool by_message = false;  // it waited for the previous tile of the path; false: for its own worker
};

struct Prediction {
  Trace trace;         // two steps; the first begins with empty rings
  double begin = 0;    // nanoseconds; the second step begins when the first ends
  double step = 0;     // nanoseconds of the second step
  double busy = 0;     // fraction of the step that workers spend in tiles, mean
  double balance = 0;  // mean of the workers' time in tiles, as a fraction of the longest
  u32 waits = 0;       // in one step
  double waiting = 0;  // nanoseconds per step that a worker waits for others, mean
  // The chain of tiles and messages that the end of the second step waited for, in order.
  std::vector<PathTile> path;
  double path_work = 0, path_messages = 0;  // nanoseconds
  u32 messages = 0;                         // on the path
};

// Throws Error when the program's waits never end.
Prediction predict(const Program& program, const CostModel& model);

}  // namespace heddle
