// A page that shows what schedules are predicted to do.
#pragma once

#include <span>
#include <string>

#include "heddle/trace/predict.h"

namespace heddle {

struct PlannedSchedule {
  std::string policy;
  Program program;
  Prediction prediction;
  double build_ms = 0;
};

// One HTML file that needs no other: a timeline of the workers for each schedule.
std::string schedule_page(const std::string& title, std::span<const PlannedSchedule> schedules);

}  // namespace heddle
