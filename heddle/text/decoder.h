// The `decoder` of tokenizer.json: tokens back to text, one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json_view.h"
#include "heddle/text/pattern.h"

namespace heddle {

// What a token adds to a text.
struct Piece {
  std::string text;                  // may be part of a character where tokens are bytes
  std::optional<std::string> first;  // instead of it where the token is the first one
  std::optional<uint8_t> byte;       // a byte of its own, of which a run makes characters
};

class Decoder {
 public:
  // Throws Error(kUnsupported) where a stage is not known or stands where it does not.
  explicit Decoder(const JsonView& json);

  Piece piece_of(const std::string& token) const;

  // Text that was not handed out yet.
  struct State {
    std::string held;   // a begun character
    std::string bytes;  // a run of bytes
    bool begun = false;
    int stripped = 0;    // characters that were taken from the beginning
    bool strips = true;  // the text so far is all taken
  };
  // The text that the token completes, and at the end what is left: U+FFFD for what stayed incomplete.
  std::string push(const Piece& piece, State& state) const;
  std::string flush(State& state) const;

 private:
  void add(const JsonView& json, int depth);
  void add_strip(const JsonView& json);
  std::string strip(std::string text, State& state) const;
  static std::string take_bytes(State& state);

  std::vector<Replacer> replacers_;
  bool byte_level_ = false, byte_fallback_ = false, fuse_ = false;
  std::string metaspace_;     // that a space is; empty for none
  bool drops_first_ = false;  // the first token loses it
  std::string strip_;         // what is taken from the beginning, most_ times
  int most_ = 0;
};

}  // namespace heddle
