// One text that a model makes, alone or in a batch: takes tokens, decodes them as their characters become whole, and
// knows when the text ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/engine/batcher.h"
#include "heddle/session/settings.h"
#include "heddle/text/stop.h"
#include "heddle/text/stream_decoder.h"

namespace heddle {

// Asked after each token, and after each step that reads a prompt, from the thread that runs them. True: the work ends.
using StopCallback = std::function<bool()>;
inline bool never_stop() {
  return false;
}

// Called with text as it becomes certain: whole characters, and nothing that may yet be part of a stop string.
using TextCallback = std::function<void(const std::string&)>;

// By the model's own logits: as they are before any sampling setting.
struct TokenLogprobs {
  float chosen = 0;
  std::vector<std::pair<i32, float>> likeliest;  // first the largest
};

// A job of a Batcher (engine/batcher.h), which calls all that BatchJob has; others read what comes after it. What the
// callbacks throw, the Batcher's step() throws.
class Answer : public BatchJob {
 public:
  // `prompt` is not empty. `tokenizer` must outlive this. Throws Error(kInvalidArgument) where a setting is out of its
  // range; tokens that the model does not know are the caller's to refuse (require_known_tokens).
  Answer(AnswerSettings settings, std::vector<i32> prompt, const Tokenizer& tokenizer);

  std::span<const i32> prompt() const override { return prompt_; }
  SamplingSettings sampling() const override { return program_sampling(settings_.sampling); }
  bool wants_logits() const override { return on_host_ || settings_.logprobs >= 0; }
  i32 choose(std::span<const float> logits, i32 chosen) override;
  bool take(i32 token) override;
  i32 left() const override { return settings_.max_tokens - i32(tokens_.size()); }
  std::span<const i32> ends() const override { return settings_.eos_token_id; }
  void end(bool full) override;

  TextCallback on_text;
  std::function<void()> on_end;  // called once, when the text is complete

  const std::vector<i32>& tokens() const { return tokens_; }  // without the token that ended it
  const std::string& text() const { return text_; }           // what on_text was called with, in one
  const std::vector<TokenLogprobs>& logprobs() const { return logprobs_; }  // for each of tokens()
  // "eos", "stop", "length", "context" (it is full); before its end, or where it was stopped, "interrupted".
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

struct AnswerTimes {
  double prompt = 0, tokens = 0;  // seconds until the first token, and from there on
};

// Runs answers to one prompt, none of which has begun, until all have ended or `stop` says so; each is ended then.
// on_prompt(tokens) is called as the prompt is read. Throws Error where a prompt is empty or does not fit the engine's
// context, and what the engine's steps throw.
AnswerTimes run_answers(Engine& engine, std::span<const std::shared_ptr<Answer>> answers,
                        const StopCallback& stop = never_stop,
                        const std::function<void(size_t tokens)>& on_prompt = {});

}  // namespace heddle
