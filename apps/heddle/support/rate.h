// Rates in messages.
#pragma once

#include <cmath>
#include <string>

#include <fmt/format.h>

namespace heddle {

// Text such as ", 12.3/s"; "" for a rate of nothing, or over no time.
inline std::string rate_text(double count, double seconds, const char* unit = "/s") {
  const double rate = count / seconds;
  return count > 0 && seconds > 0 && std::isfinite(rate) ? fmt::format(", {:.1f}{}", rate, unit) : "";
}

}  // namespace heddle
