// Small timelines for tests.
#pragma once

#include "heddle/trace/timeline.h"

namespace heddle {

// Worker 0 makes what worker 1 waits for. Both run on separate units, for two steps. In the second step
// worker 0 waits until worker 1 has used the first result.
inline Timeline two_workers() {
  Timeline timeline{.name = "two <workers>", .executor = "threads", .ops = {"make", "use more"}};
  timeline.calls = {{0, "first"}, {1, "second"}};
  TimelineInstruction make{.call = 0, .tile = {0, 4, 0, 8}, .bytes = 7000, .flops = 70, .signal = 0};
  make.waits[0] = 1, make.previous = 1;
  TimelineInstruction use{.call = 1, .tile = {1, -1, 2, 3}, .bytes = 2000, .flops = 4000, .signal = 1};
  use.waits[1] = 0;
  timeline.workers = {{0, {make}}, {1, {use}}};
  timeline.trace.lanes = {
      {.worker = 0,
       .unit = 0,
       .events = {{.fetched = 0, .ready = 0, .computed = 700, .done = 800, .epoch = 1},
                  {.fetched = 800, .ready = 2100, .computed = 2200, .done = 2200, .epoch = 2}}},
      {.worker = 1,
       .unit = 1,
       .events = {{100, 900, 1900, 2000, 300, 0, 1}, {2000, 2300, 2900, 3000, 0, 0, 2}}}};
  return timeline;
}

}  // namespace heddle
