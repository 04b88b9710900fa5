// A compiled PCRE2 pattern over UTF-8, with limits on the work of one match.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

// Immutable, so that threads may share it.
class Regex {
 public:
  struct Span {
    size_t begin, end;  // bytes
  };

  // What a thread needs to match; cheap, but not for every word.
  class Scratch {
   public:
    Scratch();
    ~Scratch();

   private:
    friend class Regex;
    struct State;
    std::unique_ptr<State> state_;
  };

  // Throws Error(kInvalidArgument) where `pcre2_pattern` does not compile.
  explicit Regex(const std::string& pcre2_pattern);

  // The first match in `text`, which must be valid UTF-8, that begins at byte `from` or later; look-behind
  // sees what is before. Throws Error(kUnsupported) where the pattern runs into the limits.
  std::optional<Span> find(std::string_view text, size_t from, Scratch& scratch) const;

 private:
  std::shared_ptr<const void> code_;
  std::string pattern_;
};

// Walks over all matches as Oniguruma's scan does: an empty match right after a match does not count.
class RegexMatches {
 public:
  RegexMatches(const Regex& regex, std::string_view text, Regex::Scratch& scratch)
      : regex_(regex), text_(text), scratch_(scratch) {}
  std::optional<Regex::Span> next();

 private:
  const Regex& regex_;
  std::string_view text_;
  Regex::Scratch& scratch_;
  size_t from_ = 0;
  std::optional<size_t> last_end_;
};

}  // namespace heddle
