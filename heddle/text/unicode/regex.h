// A compiled PCRE2 pattern over UTF-8, with limits on the work of one match.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

// Immutable, so threads may share it.
class Regex {
 public:
  struct Span {
    size_t begin, end;  // bytes
  };

  // What a thread needs to match. It is cheap, but too expensive to make for every word.
  class Scratch {
   public:
    Scratch();
    ~Scratch();

   private:
    friend class Regex;
    struct State;
    std::unique_ptr<State> state_;
  };

  // Throws Error(kInvalidArgument) when `pcre2_pattern` does not compile.
  explicit Regex(const std::string& pcre2_pattern);

  // The first match in `text`, which must be valid UTF-8, that begins at byte `from` or later. Look-behind
  // sees earlier bytes. Throws Error(kUnsupported) when the pattern exceeds the limits.
  std::optional<Span> find(std::string_view text, size_t from, Scratch& scratch) const;

  // Calls `visit` for all matches from the left, as Oniguruma's scan finds them: an empty match right after a
  // match does not count.
  void for_each_match(std::string_view text, Scratch& scratch, const std::function<void(Span)>& visit) const;

 private:
  std::shared_ptr<const void> code_;
  std::string pattern_;
};

}  // namespace heddle
