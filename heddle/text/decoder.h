// The `decoder` of tokenizer.json. It turns tokens back into text, one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json_view.h"
#include "heddle/text/pattern.h"

namespace heddle {

// The text that a token adds.
struct Piece {
  std::string text;                  // may be part of a character if tokens are bytes
  std::optional<std::string> first;  // used instead if the token is the first one
  std::optional<uint8_t> byte;       // a single byte; a run of these makes characters
};

class Decoder {
 public:
  // Throws Error(kUnsupported) for an unknown stage, or a stage in the wrong place.
  explicit Decoder(const JsonView& json);

  Piece piece_of(const std::string& token) const;

  // Text that was not returned yet.
  struct State {
    std::string held;   // the beginning of a character
    std::string bytes;  // a run of bytes
    bool begun = false;
    int stripped = 0;    // characters that were stripped from the beginning
    bool strips = true;  // nothing has been kept so far
  };
  // Returns the text that the token completes; at the end, the rest, with U+FFFD for what stayed incomplete.
  std::string push(const Piece& piece, State& state) const;
  std::string flush(State& state) const;

 private:
  void add(const JsonView& json, int depth);
  void add_strip(const JsonView& json);
  std::string strip(std::string text, State& state) const;
  static std::string take_bytes(State& state);

  std::vector<Replacer> replacers_;
  bool byte_level_ = false, byte_fallback_ = false, fuse_ = false;
  std::string metaspace_;     // text that stands for a space; empty: none
  bool drops_first_ = false;  // the first token loses it
  std::string strip_;         // text that is stripped from the beginning, at most most_ times
  int most_ = 0;
};

}  // namespace heddle
