// The `decoder` of tokenizer.json. It turns tokens back into text, one at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json_view.h"
#include "heddle/text/decoder_stages.h"

namespace heddle {

class Decoder {
 public:
  Decoder();  // as without a decoder: one space between tokens
  // Throws Error(kIo) with the key that is wrong.
  explicit Decoder(const JsonView& json);

  // Text that was not returned yet.
  struct State {
    std::vector<DecoderMemory> stages;
  };
  // Returns the text that the token completes; at the end, the rest, with U+FFFD for what stayed incomplete.
  std::string push(std::string_view token, State& state) const;
  std::string flush(State& state) const;
  // The bytes of a token within a text; nothing: they depend on the tokens around it.
  std::optional<std::string> token_bytes(std::string_view token) const;

 private:
  void add(const JsonView& json, int depth);
  void add(std::unique_ptr<const DecoderStage> stage);
  void pass(size_t stage, std::string_view text, bool begins, State& state, std::string& out) const;

  std::vector<std::shared_ptr<const DecoderStage>> stages_;
  bool fused_ = false;  // the stages so far make one token of all
};

}  // namespace heddle
