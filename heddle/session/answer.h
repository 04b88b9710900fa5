// One text that a model makes, alone or in a batch: takes tokens, decodes them as their characters become whole, and
// knows when the text ends.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/engine/batcher.h"
#include "heddle/text/sampling_params.h"
#include "heddle/text/stop.h"
#include "heddle/text/stream_decoder.h"

namespace heddle {

struct AnswerSettings {
  SamplingParams sampling;
  i32 logprobs = -1;  // of this many likeliest tokens beside the chosen one; -1: none at all
  i32 max_tokens = 256;
  std::vector<std::string> stops;
  std::vector<i32> eos;
};

// By the model's own logits: as they are before any sampling setting.
struct TokenLogprobs {
  float chosen = 0;
  std::vector<std::pair<i32, float>> likeliest;  // first the largest
};

// What of it a program does.
SamplingSettings program_sampling(const SamplingParams& sampling);
// Where the program chose, or what made the host do it.
std::string chooser_of(const SamplingParams& sampling);

class Answer : public BatchJob {
 public:
  // `tokenizer` must outlive this.
  Answer(AnswerSettings settings, std::vector<i32> prompt, const Tokenizer& tokenizer);

  std::span<const i32> prompt() const override { return prompt_; }
  SamplingSettings sampling() const override { return program_sampling(settings_.sampling); }
  bool wants_logits() const override { return on_host_ || settings_.logprobs >= 0; }
  i32 choose(std::span<const float> logits, i32 chosen) override;
  bool take(i32 token) override;
  i32 left() const override { return settings_.max_tokens - i32(tokens_.size()); }
  std::span<const i32> ends() const override { return settings_.eos; }
  void end(bool full) override;

  // Called with text as it becomes certain.
  std::function<void(const std::string&)> on_text;
  std::function<void()> on_end;

  const std::vector<i32>& tokens() const { return tokens_; }
  const std::string& text() const { return text_; }
  const std::vector<TokenLogprobs>& logprobs() const { return logprobs_; }  // for each of tokens()
  // "eos", "stop", "length", "context"; before its end "interrupted".
  const std::string& reason() const { return reason_; }
  bool ended() const { return ended_; }

 private:
  bool end_with(const char* reason);
  void emit(const std::string& text);

  AnswerSettings settings_;
  bool on_host_;  // tokens are chosen here
  std::vector<i32> prompt_, tokens_;
  std::vector<i32> seen_;  // the prompt and all tokens, where they are chosen here
  std::vector<TokenLogprobs> logprobs_;
  StreamDecoder decoder_;
  StopStrings stops_;
  std::string text_, reason_ = "interrupted";
  bool ended_ = false;
};

}  // namespace heddle
