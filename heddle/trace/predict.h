// What a run of a program would take by a model of costs: the same events that a traced run notes, and what
// decides the length of a step. Workers draw weights ahead as far as their ring holds; memory that they share is in the
// model's bytes a second, and nothing else is contended for.
#pragma once

#include <vector>

#include "heddle/ir/cost.h"
#include "heddle/ir/trace.h"

namespace heddle {

// A tile of the chain that decides how long a step takes.
struct PathTile {
  u32 worker = 0, instruction = 0;
  bool by_message = false;  // it waited for the step before it in the path, else for its own worker
};

struct Prediction {
  Trace trace;         // two steps; the first begins with empty rings
  double begin = 0;    // of the second step: when the first ended, nanoseconds
  double step = 0;     // nanoseconds of the second
  double busy = 0;     // part of the step that workers spend in tiles, their mean
  double balance = 0;  // mean of the workers' time in tiles, as a part of the longest
  u32 waits = 0;       // of a step
  double waiting = 0;  // nanoseconds of a step that a worker waits for others, mean
  // The chain of tiles and messages that the end of the step waited for, in order; of the second step.
  std::vector<PathTile> path;
  double path_work = 0, path_messages = 0;  // nanoseconds
  u32 messages = 0;                         // of the path
};

// Throws Error where the program's waits never end.
Prediction predict(const Program& program, const CostModel& model);

}  // namespace heddle
