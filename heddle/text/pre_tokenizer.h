// The `pre_tokenizer` of tokenizer.json. It cuts text into the words that BPE works on. Each stage runs on
// the pieces of the stage before it. After ByteLevel, which is always the last stage, a word is a string of
// bytes; without it, of characters.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json_view.h"
#include "heddle/text/pattern.h"
#include "heddle/text/unicode/regex.h"

namespace heddle {

class PreTokenizer {
 public:
  using Sink = std::function<void(std::string_view)>;

  // Memory that one call of encode() shares over its pieces of text.
  struct Scratch {
    Regex::Scratch regex;
    std::deque<std::string> made;  // texts that were changed; words point into it
  };

  PreTokenizer() = default;  // one word

  // From the member `pre_tokenizer`. Throws Error(kUnsupported) for an unknown stage.
  explicit PreTokenizer(const JsonView& json);

  // Calls `word` for each word of `text`, which is valid UTF-8. The words are valid as long as text and
  // scratch. `is_first`: the text is the beginning of the whole one.
  void run(std::string_view text, bool is_first, Scratch& scratch, const Sink& word) const;

  bool ends_in_bytes() const { return ends_in_bytes_; }

 private:
  enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

  struct Stage {
    std::unique_ptr<const Regex> pattern;  // none: the piece stays whole
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;
    std::string prefix;  // put before a piece that does not begin with it
    bool prefix_first_only = false;
    std::unique_ptr<const Replacer> replacer;  // runs before everything else
  };
  struct Piece {
    std::string_view text;
    bool is_first;
  };

  static Behavior read_behavior(const JsonView& behavior);
  void add(const JsonView& json, int depth);
  void add_split(const JsonView& json);
  void add_byte_level(const JsonView& json);
  void add_metaspace(const JsonView& json);
  void add_pattern(std::string_view oniguruma, Behavior behavior, bool invert = false);
  void run_stage(size_t index, Piece piece, Scratch& scratch, const Sink& word) const;
  static void split(const Stage& stage, std::string_view piece, Scratch& scratch, const Sink& part);

  std::vector<Stage> stages_;
  bool ends_in_bytes_ = false;  // the last stage is ByteLevel
};

}  // namespace heddle
