// Measured values in the form of bench/results.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace heddle {

class Json;

// A row of the results: the median over the rounds, and every round.
struct Measurement {
  std::string work, unit;
  std::vector<double> all;
  double ceiling = 0;                    // the best that the machine allows; 0: unknown
  std::optional<double> predicted = {};  // prediction of a model of costs

  double median() const;
  // difference from the prediction, per cent
  double deviation() const { return 100 * (*predicted / median() - 1); }
};

struct MeasuredWith {
  std::string device, commit, command;
};

// The results as a file of them has them, with today's date.
Json json_of(const MeasuredWith& with, std::span<const Measurement> rows);
void write_measurements(const std::string& path, const MeasuredWith& with, std::span<const Measurement> rows);

}  // namespace heddle
