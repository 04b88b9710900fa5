// Stop strings over a stream of text. The text ends before the first stop string that becomes complete,
// however the stream was cut into pieces. Text that may still become a stop string is held back.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

class StopStrings {
 public:
  // Throws when a stop string is empty, because it would match anywhere.
  explicit StopStrings(std::vector<std::string> stops);

  // Returns the text that is now certain; nothing after the stop.
  std::string push(std::string_view text);

  // Returns the held-back text, once the stream has ended without a stop string.
  std::string flush();

  bool stopped() const { return stopped_; }
  const std::string& stop() const { return stop_; }  // the stop string that ended the text

 private:
  // Knuth, Morris and Pratt: the length of the stop string's beginning that the stream ends with.
  struct Matcher {
    std::string text;
    std::vector<size_t> fallback;  // by length matched - 1: the next shorter beginning that is also an ending
    size_t matched = 0;
    explicit Matcher(std::string stop);
    bool step(char byte);  // true when the stop string is complete
  };

  std::vector<Matcher> matchers_;  // longest first
  std::string held_;
  std::string stop_;
  bool stopped_ = false;
};

}  // namespace heddle
