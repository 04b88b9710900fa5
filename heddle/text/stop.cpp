#include "heddle/text/stop.h"

#include <algorithm>
#include <utility>

#include "heddle/base/error.h"

namespace heddle {

StopStrings::Matcher::Matcher(std::string stop) : text(std::move(stop)), fallback(text.size(), 0) {
  for (size_t i = 1; i < text.size(); ++i) {
    step(text[i]);
    fallback[i] = matched;
  }
  matched = 0;
}

bool StopStrings::Matcher::step(char byte) {
  while (matched > 0 && text[matched] != byte) matched = fallback[matched - 1];
  if (text[matched] == byte) ++matched;
  return matched == text.size();
}

StopStrings::StopStrings(std::vector<std::string> stops) {
  std::ranges::stable_sort(stops, std::ranges::greater(), &std::string::size);
  for (std::string& stop : stops) {
    require(!stop.empty(), "[stop_strings] one of {} stop strings is empty; give it a text", stops.size());
    matchers_.emplace_back(std::move(stop));
  }
}

std::string StopStrings::push(std::string_view text) {
  std::string certain;
  for (size_t i = 0; i < text.size() && !stopped_; ++i) {
    held_ += text[i];
    size_t hold = 0;
    for (Matcher& matcher : matchers_) {
      // Among stop strings that end here, the longest comes first in the list, because it begins first.
      if (matcher.step(text[i]) && !stopped_) {
        stopped_ = true;
        stop_ = matcher.text;
      }
      hold = std::max(hold, matcher.matched);
    }
    certain += held_.substr(0, held_.size() - (stopped_ ? stop_.size() : hold));
    held_.erase(0, held_.size() - (stopped_ ? 0 : hold));
  }
  return certain;
}

std::string StopStrings::flush() {
  return std::exchange(held_, {});
}

}  // namespace heddle
