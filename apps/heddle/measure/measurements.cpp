#include "apps/heddle/measure/measurements.h"

#include <algorithm>
#include <ctime>

#include "apps/heddle/support/output.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::tm parts{};
  std::strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &parts));
  return text;
}

}  // namespace

double Measurement::median() const {
  std::vector<double> sorted = all;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

Json json_of(const MeasuredWith& with, std::span<const Measurement> rows) {
  Json kept = Json::array();
  for (const Measurement& row : rows) {
    Json made = Json::object({{"work", row.work}, {"value", row.median()}, {"unit", row.unit}});
    if (row.predicted) made["predicted"] = *row.predicted, made["deviation_percent"] = row.deviation();
    made["ceiling"] = row.ceiling > 0 ? Json(row.ceiling) : Json();
    made["all"] = row.all;
    made["peers"] = Json::object();
    made["ratio"] = nullptr;
    kept.push_back(made);
  }
  return Json::object({{"device", with.device},
                       {"date", today()},
                       {"commit", with.commit},
                       {"command", with.command},
                       {"rows", kept}});
}

void write_measurements(const std::string& path, const MeasuredWith& with,
                        std::span<const Measurement> rows) {
  write_file(path, json_of(with, rows).dump(2) + "\n");
  say_written(path);
}

}  // namespace heddle
