#include "apps/heddle/support/answer.h"

#include <algorithm>
#include <utility>

namespace heddle {

Answer::Answer(AnswerSettings settings, std::vector<i32> prompt, const Tokenizer& tokenizer)
    : settings_(std::move(settings)),
      prompt_(std::move(prompt)),
      decoder_(tokenizer, true),
      stops_(settings_.stops) {}

SamplingSettings Answer::sampling() const {
  const SamplingParams& s = settings_.sampling;
  return {.temperature = s.temperature,
          .top_p = s.top_p,
          .min_p = s.min_p,
          .repetition_penalty = s.repetition_penalty,
          .top_k = s.top_k,
          .seed = s.seed};
}

bool Answer::take(i32 token) {
  if (std::ranges::find(settings_.eos, token) != settings_.eos.end()) return end_with("eos");
  tokens_.push_back(token);
  emit(stops_.push(decoder_.push(token)));
  if (stops_.stopped()) return end_with("stop");
  return i32(tokens_.size()) < settings_.max_tokens || end_with("length");
}

void Answer::end(bool full) {
  if (full) reason_ = "context";
  if (!stops_.stopped()) emit(stops_.push(decoder_.flush()) + stops_.flush());
  if (on_end) on_end();
}

bool Answer::end_with(const char* reason) {
  reason_ = reason;
  return false;
}

void Answer::emit(const std::string& text) {
  text_ += text;
  if (on_text && !text.empty()) on_text(text);
}

}  // namespace heddle
