// The `pre_tokenizer` of tokenizer.json. It cuts text into the words that the model works on. Each stage runs on
// the pieces of the stage before it. ByteLevel as the last stage leaves words as strings of bytes, or else, as
// before any other stage, spells them in its alphabet.
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

  // From the member `pre_tokenizer`. Throws Error with the key that is wrong.
  explicit PreTokenizer(const JsonView& json);

  // True if the last stage is ByteLevel.
  bool ends_in_bytes() const { return !stages_.empty() && stages_.back().byte_level; }
  // Lets that stage spell its words.
  void spell_words() { stages_.back().spells = true; }

  // Calls `word` for each word of `text`, which is valid UTF-8. The words are valid as long as text and
  // scratch. `is_first`: the text is the beginning of the whole one.
  void run(std::string_view text, bool is_first, Scratch& scratch, const Sink& word) const;

  enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

  struct Stage {
    std::unique_ptr<const Regex> pattern;  // none: the piece stays whole
    // Cuts a piece without a pattern.
    void (*cut)(std::string_view piece, size_t length, const Sink& part) = nullptr;
    size_t length = 0;  // characters of a part
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;
    std::string prefix;  // put before a piece that does not begin with it
    bool prefix_first_only = false;
    std::unique_ptr<const Replacer> replacer;  // runs before everything else
    bool byte_level = false, spells = false;
  };

 private:
  struct Piece {
    std::string_view text;
    bool is_first;
  };

  void add(const JsonView& json, int depth);
  void run_stage(size_t index, Piece piece, Scratch& scratch, const Sink& word) const;
  static void split(const Stage& stage, std::string_view piece, Scratch& scratch, const Sink& part);

  std::vector<Stage> stages_;
};

}  // namespace heddle
