// The `normalizer` of tokenizer.json: it changes a text before it is cut into words.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json_view.h"
#include "heddle/text/unicode/regex.h"

namespace heddle {

class Normalizer {
 public:
  struct Run {
    Regex::Scratch& scratch;
    bool keeps_front = true;  // what the result begins with comes from the beginning of the text
  };
  using Stage = std::function<std::string(std::string_view text, Run& run)>;

  Normalizer() = default;  // changes nothing
  // Throws Error(kUnsupported) for an unknown stage.
  explicit Normalizer(const JsonView& json) { add(json, 0); }

  bool changes_nothing() const { return stages_.empty(); }
  // `text` is valid UTF-8, and so is the result.
  std::string run(std::string_view text, Run& run) const;
  std::string run(std::string_view text, Regex::Scratch& scratch) const {
    Run plain{scratch};
    return run(text, plain);
  }

 private:
  void add(const JsonView& json, int depth);

  std::vector<Stage> stages_;
};

}  // namespace heddle
