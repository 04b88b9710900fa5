// One text that a model makes, alone or in a batch: takes tokens, decodes them as their characters become whole, and
// knows when the text ends.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/engine/batcher.h"
#include "heddle/text/sampling_params.h"
#include "heddle/text/stop.h"
#include "heddle/text/stream_decoder.h"

namespace heddle {

struct AnswerSettings {
  SamplingParams sampling;
  i32 max_tokens = 256;
  std::vector<std::string> stops;
  std::vector<i32> eos;
};

class Answer : public BatchJob {
 public:
  // `tokenizer` must outlive this.
  Answer(AnswerSettings settings, std::vector<i32> prompt, const Tokenizer& tokenizer);

  std::span<const i32> prompt() const override { return prompt_; }
  SamplingSettings sampling() const override;
  bool take(i32 token) override;
  void end(bool full) override;

  // Called with text as it becomes certain.
  std::function<void(const std::string&)> on_text;
  std::function<void()> on_end;

  const std::vector<i32>& tokens() const { return tokens_; }
  const std::string& text() const { return text_; }
  // "eos", "stop", "length", "context"; before its end "interrupted".
  const std::string& reason() const { return reason_; }

 private:
  bool end_with(const char* reason);
  void emit(const std::string& text);

  AnswerSettings settings_;
  std::vector<i32> prompt_, tokens_;
  StreamDecoder decoder_;
  StopStrings stops_;
  std::string text_, reason_ = "interrupted";
};

}  // namespace heddle
