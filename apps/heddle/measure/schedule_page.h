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

// A self-contained HTML file with a timeline of the workers for each schedule.
std::string schedule_page(const std::string& title, std::span<const PlannedSchedule> schedules);

}  // namespace heddle
