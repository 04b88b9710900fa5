// The stages of a decoder. Each turns a list of tokens into another one, as `tokenizers` does, but does so while
// the tokens come.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "heddle/base/json_view.h"

namespace heddle {

// Memory of one stage between tokens.
struct DecoderMemory {
  std::string held;    // text that is not certain yet
  bool begun = false;  // a token came
  bool holds = false;  // `held` is a token, which may be empty
  size_t count = 0;    // characters stripped so far
  std::string last;    // the token before
};

class DecoderStage {
 public:
  // Takes text of a token: `begins` if it is the beginning of one, else it goes on with the last one.
  using Emit = std::function<void(std::string_view text, bool begins)>;

  virtual ~DecoderStage() = default;
  virtual void push(std::string_view text, bool begins, DecoderMemory& memory, const Emit& emit) const = 0;
  // Emits what it held, at the end of the text.
  virtual void flush(DecoderMemory& memory, const Emit& emit) const = 0;
  // The bytes that stand for those of a token within a text; nothing: those depend on the tokens around it.
  virtual std::optional<std::string> bytes(std::string_view) const { return {}; }
  // True if all that it emits is one token.
  virtual bool fuses() const { return false; }
};

// Each throws Error(kIo) for a value that it cannot have. `json` was checked (tokenizer_keys.h). `fused`: all that
// comes is one token, in pieces.
std::unique_ptr<const DecoderStage> make_decoder_stage(std::string_view type, const JsonView& json,
                                                       bool fused);
// One space between tokens.
std::unique_ptr<const DecoderStage> make_spaces();

}  // namespace heddle
