// A page that shows what schedules are predicted to do.
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
  std::optional<Measurement> measured;  // microseconds of a step
};

// One HTML file that needs no other: a timeline of the workers for each schedule.
std::string schedule_page(const std::string& title, std::span<const PlannedSchedule> schedules);

}  // namespace heddle
