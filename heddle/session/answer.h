// One answer of a model, alone or in a batch. It takes tokens, decodes them as their characters become
// complete, and knows when the text ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/engine/batcher.h"
#include "heddle/session/settings.h"
#include "heddle/text/chat_template.h"
#include "heddle/text/reasoning.h"
#include "heddle/text/stop.h"
#include "heddle/text/stream_decoder.h"

namespace heddle {

struct CallForm;

// Called after each token, and after each step that reads a prompt, on the thread that runs them. Returning
// true ends the work.
using StopCallback = std::function<bool()>;
inline bool never_stop() {
  return false;
}

// Called with text as it becomes certain: whole characters, and nothing that may still become part of a stop
// string.
using TextCallback = std::function<void(const std::string&)>;

// Settings by which tokens become the text of an answer.
struct AnswerText {
  // Its text goes on with the prompt's: a space between the two is a part of it. Otherwise it is a text of its own.
  bool after_prompt = true;
  const ReasoningForm* reasoning = nullptr;  // how the model marks its reasoning, if it is told apart
  std::string prompt = {};                   // the prompt's text, which the reasoning may begin in
  const CallForm* calls = nullptr;  // how the model marks calls of tools, if the text keeps their marks
};

// A prompt as the model reads it, and how its answer becomes text.
struct AskedPrompt {
  std::vector<i32> tokens;
  AnswerText form = {};
};

// A turn of a conversation, of which `chat` made `text`.
AskedPrompt asked_turn(const ChatTemplate& chat, std::string text, const Tokenizer& tokenizer);

// Log probabilities by the model's own logits, before any sampling setting.
struct TokenLogprobs {
  float chosen = 0;
  std::vector<std::pair<i32, float>> likeliest;  // the most likely first
};

// `count`: so many of the most likely tokens, of equally likely ones the first.
TokenLogprobs logprobs_of(std::span<const float> logits, i32 chosen, size_t count);

// A job of a Batcher (engine/batcher.h). The Batcher calls the functions of BatchJob; the others are for the
// answer's owner. An exception of a callback leaves the Batcher through step().
class Answer : public BatchJob {
 public:
  // `prompt` is not empty. `tokenizer` must outlive the answer. Throws Error(kInvalidArgument) when a setting
  // is out of its range, or when no token begins the form that the answer must have. The caller must refuse tokens that the model does not know (require_known_tokens).
  Answer(AnswerSettings settings, std::vector<i32> prompt, const Tokenizer& tokenizer,
         const AnswerText& text = {});

  std::span<const i32> prompt() const override { return prompt_; }
  SamplingSettings sampling() const override { return program_sampling(settings_, prompt_.size()); }
  bool wants_logits() const override { return on_host_ || settings_.logprobs >= 0; }
  void begin(i32 known) override { cached_tokens_ = known; }
  i32 choose(std::span<const float> logits, i32 chosen) override;
  bool take(i32 token) override;
  i32 left() const override { return settings_.max_tokens - i32(tokens_.size()); }
  std::span<const i32> ends() const override { return settings_.eos_token_id; }
  bool is_constrained() const override { return form_.has_value(); }
  std::span<const u32> mask() const override { return mask_; }
  void end(bool full) override;
  std::string name() const override { return prompt_name; }

  std::string prompt_name;  // for errors, if there are other prompts
  TextCallback on_text, on_reasoning;
  std::function<void()> on_end;  // called once, when the text is complete

  const std::vector<i32>& tokens() const { return tokens_; }  // without the token that ended it
  const std::string& text() const { return text_; }           // all text that on_text received
  const std::string& reasoning() const {
    return reasoning_;
  }  // without white space at its end, once it has ended
  const std::vector<TokenLogprobs>& logprobs() const { return logprobs_; }  // for each of tokens()
  // Tokens of the prompt that were not computed for this answer. Known with its first token.
  i32 cached_tokens() const { return cached_tokens_; }
  // "eos", "stop", "length" or "context" (it is full). "interrupted" before the end, or if the answer was
  // stopped.
  const std::string& reason() const { return reason_; }
  const std::string& stop_string() const { return stops_.stop(); }  // that ended it
  bool ended() const { return ended_; }

 private:
  bool end_with(const char* reason);
  bool set_mask();
  void emit(const std::vector<ReasoningReader::Part>& parts);

  AnswerSettings settings_;
  bool on_host_;  // the host chooses the tokens
  std::vector<i32> prompt_, tokens_;
  i32 cached_tokens_ = 0;
  std::vector<i32> seen_;  // the prompt and all tokens, if the host chooses them
  std::vector<TokenLogprobs> logprobs_;
  StreamDecoder decoder_;
  StopStrings stops_;
  ReasoningReader reader_;
  std::optional<GrammarState> form_;  // where the answer stands in its form, if it has one
  std::vector<u32> mask_;             // for the next token
  std::string text_, reasoning_, reason_ = "interrupted";
  bool ended_ = false;
};

struct AnswerTimes {
  double prompt = 0, tokens = 0;  // seconds until the first token, and from then on
  BatchStats steps = {};
};

// Runs new answers to one prompt until all have ended or `stop` returns true, and then ends each of them. It
// calls on_prompt(tokens) as the prompt is read. Throws Error when a prompt is empty or does not fit the
// engine's context; errors of the engine's steps pass through.
AnswerTimes run_answers(Engine& engine, std::span<const std::shared_ptr<Answer>> answers,
                        const StopCallback& stop = never_stop,
                        const std::function<void(size_t tokens)>& on_prompt = {},
                        const BatchOptions& options = {});

}  // namespace heddle
