// Measured values as bench/results keeps them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace heddle {

// A line of the results: the median over the rounds, and all of them.
struct Measurement {
  std::string work, unit;
  std::vector<double> all;
  double ceiling = 0;                    // the best that the machine allows; 0: not known
  std::optional<double> predicted = {};  // by a model of costs

  double median() const;
  double deviation() const { return 100 * (*predicted / median() - 1); }  // of what was predicted, per cent
};

struct MeasuredWith {
  std::string device, commit, command;
};

// With the date of today.
void write_measurements(const std::string& path, const MeasuredWith& with, std::span<const Measurement> rows);

}  // namespace heddle
