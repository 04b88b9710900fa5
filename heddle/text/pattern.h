// The `pattern` of tokenizer.json: {"String": …} or {"Regex": …}.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "heddle/base/json_view.h"
#include "heddle/text/unicode/regex.h"

namespace heddle {

// Throws, with the key, when it is neither, or when the pattern is not supported.
std::unique_ptr<const Regex> read_pattern(const JsonView& pattern);

// A Replace of tokenizer.json: writes `content` for each match of `pattern`.
class Replacer {
 public:
  explicit Replacer(const JsonView& json);
  // Replaces one text by another.
  Replacer(std::string from, std::string to) : from_(std::move(from)), content_(std::move(to)) {}
  // Clears `keeps_front` when what the result begins with stands for later characters than the first.
  std::string run(std::string_view text, Regex::Scratch& scratch, bool* keeps_front = nullptr) const;

 private:
  std::string from_;  // a plain text; empty if there is a pattern
  std::unique_ptr<const Regex> pattern_;
  std::string content_;
};

}  // namespace heddle
