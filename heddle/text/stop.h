// Stop strings over a stream of text: the text ends before the stop string that is complete first, however the
// stream was cut into pieces. What may yet become a stop string is held back.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

class StopStrings {
 public:
  // Throws where a stop string is empty: it would match anywhere.
  explicit StopStrings(std::vector<std::string> stops);

  // The text that is certain now; nothing more after the stop.
  std::string push(std::string_view text);

  // What was held back, once the stream has ended without a stop string.
  std::string flush();

  bool stopped() const { return stopped_; }
  const std::string& stop() const { return stop_; }  // the stop string that ended the text

 private:
  // Knuth, Morris and Pratt: how much of the stop string the stream ends with.
  struct Matcher {
    std::string text;
    std::vector<size_t> fallback;  // by length matched - 1: the next shorter beginning that is an end too
    size_t matched = 0;
    explicit Matcher(std::string stop);
    bool step(char byte);  // whether the stop string is complete
  };

  std::vector<Matcher> matchers_;  // longest first
  std::string held_;
  std::string stop_;
  bool stopped_ = false;
};

}  // namespace heddle
