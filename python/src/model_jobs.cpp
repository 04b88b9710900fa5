#include "python/src/model_jobs.h"

#include <iterator>

#include <fmt/format.h>

#include "heddle/base/memory.h"

namespace heddle::python {

RecordedAnswer::RecordedAnswer(AnswerSettings settings, const AskedPrompt& asked, const Tokenizer& tokenizer,
                               bool shares_pages)
    : Answer(std::move(settings), asked.tokens, tokenizer, asked.form), shares_pages_(shares_pages) {
  on_text = [this](const std::string& text) { piece_ += text; };
  on_reasoning = [this](const std::string& text) { thought_ += text; };
}

bool RecordedAnswer::take(i32 token) {
  const bool more = Answer::take(token);
  made_.push_back({.id = token,
                   .index = count_++,
                   .text = std::exchange(piece_, {}),
                   .reasoning = std::exchange(thought_, {})});
  if (!logprobs().empty()) made_.back().logprobs = logprobs().back();
  return more;
}

void RecordedAnswer::end(bool full) {
  Answer::end(full);
  if (made_.empty()) return;
  made_.back().text += std::exchange(piece_, {});
  made_.back().reasoning += std::exchange(thought_, {});
  made_.back().reason = reason();
}

bool RecordedAnswer::publish() {
  std::move(made_.begin(), made_.end(), std::back_inserter(ready));
  made_.clear();
  return Answer::ended();
}

GivenTokens::GivenTokens(std::vector<i32> tokens, i32 vocab) : tokens_(std::move(tokens)) {
  const size_t count = tokens_.size() * size_t(vocab);
  with_memory_for(
      fmt::format("the logits of {} tokens", tokens_.size()), [&] { logits.reserve(count); },
      count * sizeof(float));
}

}  // namespace heddle::python
