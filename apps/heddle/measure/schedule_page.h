// A page that shows the predictions for schedules.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/heddle/measure/measurements.h"
#include "heddle/trace/predict.h"
#include "heddle/trace/timeline.h"

namespace heddle {

struct PlannedSchedule {
  std::string policy;
  Program program;
  Prediction prediction;
  double build_ms = 0;
  std::vector<std::string> bodies;      // Executor::bodies() of the executor that would run the program
  std::optional<Measurement> measured;  // microseconds per step
};

Timeline timeline_of(const PlannedSchedule& schedule, i32 rows);
// The page of a profile (trace/page.h), with the predicted step of each schedule to choose from. `rows`: of a step.
std::string schedule_page(const std::string& title, std::span<const PlannedSchedule> schedules, i32 rows);

}  // namespace heddle
