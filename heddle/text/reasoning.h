// Tells a model's reasoning from its answer, in what it writes. Models put marks around it: <think> and </think> (Qwen 3,
// DeepSeek R1, GLM, SmolLM3 and others), words (Granite 3.2), or they name a channel before each part (gpt-oss).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/tokenizer.h"

namespace heddle {

struct ReasoningForm {
  std::string_view begin, end;                          // around the reasoning
  std::string_view answer_begin = {}, answer_end = {};  // around the answer, if it has marks
  bool channels = false;                                // gpt-oss; then the others are unused

  // Every mark. A tokenizer may have them as special tokens, which decoding leaves out.
  std::vector<std::string_view> marks() const;
};

// The form that a chat template names, or for which the tokenizer has a token; null if there is none.
const ReasoningForm* find_reasoning_form(std::string_view chat_template, const Tokenizer& tokenizer);

// Reads a text with marks, piece by piece. A text without any is an answer, and stays as it is. White space around a mark
// is no part of reasoning or answer.
class ReasoningReader {
 public:
  struct Part {
    bool is_reasoning;
    std::string text;
  };

  // `form` may be null, and outlives the reader. `prompt`: the text before; it may end with the mark that begins the
  // reasoning. `keeps_calls`: messages of gpt-oss to functions are a part of the answer, with their marks and header.
  ReasoningReader(const ReasoningForm* form, std::string_view prompt, bool keeps_calls = false);

  // The parts that are now certain. A piece that may become a mark is held back.
  std::vector<Part> push(std::string_view text);
  // The rest, at the end of the text.
  std::vector<Part> flush();
  // True while what comes is known to be no part of the answer.
  bool is_before_answer() const {
    return state_ == State::kReasoning || (form_ && form_->channels && state_ != State::kAnswer);
  }

 private:
  enum class State { kBegin, kReasoning, kAnswer, kHeader, kCall };
  bool pass_mark(std::string_view mark, std::vector<Part>& parts);
  void pass_channel(std::string_view mark, std::vector<Part>& parts);
  void write(std::string_view text, std::vector<Part>& parts);

  const ReasoningForm* form_;
  std::vector<std::string_view> marks_;
  State state_ = State::kBegin;
  bool fresh_ = false;   // nothing but white space came since the last mark
  std::string held_;     // may become a mark
  std::string spaces_;   // before the first word of all
  std::string channel_;  // the header since the last mark that opened one
  const bool keeps_calls_;
  bool has_mark_ = false;
  std::string recipient_;  // what the header has before the channel
};

}  // namespace heddle
