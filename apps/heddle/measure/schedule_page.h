// A page that shows the predictions for schedules.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "apps/heddle/measure/measurements.h"
#include "heddle/trace/predict.h"

namespace heddle {

struct PlannedSchedule {
  std::string policy;
  Program program;
  Prediction prediction;
  double build_ms = 0;
  std::optional<Measurement> measured;  // microseconds per step
};

// The page of a profile (trace/page.h), with the predicted step of each schedule to choose from. `rows`: of a step.
std::string schedule_page(const std::string& title, std::span<const PlannedSchedule> schedules, i32 rows);

}  // namespace heddle
