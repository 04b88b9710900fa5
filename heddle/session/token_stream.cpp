#include "heddle/session/token_stream.h"

#include <algorithm>

#include <fmt/format.h>

#include "heddle/base/memory.h"

namespace heddle {

TokenStream::TokenStream(AnswerSettings settings, const AskedPrompt& asked, const Tokenizer& tokenizer,
                         const TokenStreamOptions& options)
    : Answer(std::move(settings), asked.tokens, tokenizer, asked.form), options_(options) {
  on_text = [this](const std::string& text) { piece_ += text; };
  on_reasoning = [this](const std::string& text) { thought_ += text; };
}

i32 TokenStream::left() const {
  const std::lock_guard lock(mutex_);
  if (options_.room == 0) return Answer::left();
  return std::min(Answer::left(), i32(options_.room) - i32(waiting_.size()));
}

bool TokenStream::is_ready() const {
  const std::lock_guard lock(mutex_);
  return !is_full_ && (is_asked_ || !options_.lazy);
}

bool TokenStream::take(i32 token) {
  const bool more = Answer::take(token);
  made_ = {.id = token,
           .index = count_++,
           .text = std::exchange(piece_, {}),
           .reasoning = std::exchange(thought_, {}),
           .logprobs = {},
           .reason = {},
           .stop = {}};
  if (!logprobs().empty()) made_->logprobs = logprobs().back();
  return more;
}

void TokenStream::end(bool full) {
  Answer::end(full);
  if (!made_) return;
  made_->text += std::exchange(piece_, {});
  made_->reasoning += std::exchange(thought_, {});
  made_->reason = reason();
  made_->stop = stop_string();
}

void TokenStream::publish() {
  const std::lock_guard lock(mutex_);
  if (made_) waiting_.push_back(*std::exchange(made_, {}));
  is_full_ |= options_.room > 0 && waiting_.size() >= options_.room;
}

std::optional<AnswerToken> TokenStream::next() {
  const std::lock_guard lock(mutex_);
  is_asked_ = true;
  if (waiting_.empty()) return {};
  AnswerToken token = std::move(waiting_.front());
  waiting_.pop_front();
  is_full_ &= waiting_.size() > options_.room / 2;
  return token;
}

GivenTokens::GivenTokens(std::vector<i32> tokens, i32 vocab) : tokens_(std::move(tokens)) {
  const size_t count = tokens_.size() * size_t(vocab);
  with_memory_for(
      fmt::format("the logits of {} tokens", tokens_.size()), [&] { logits.reserve(count); },
      count * sizeof(float));
}

void ScoredTokens::take_rows(std::span<const float> rows) {
  for (; !rows.empty() && scores.size() + 1 < tokens_.size(); rows = rows.subspan(vocab_))
    scores.push_back(logprobs_of(rows.first(vocab_), tokens_[scores.size() + 1], count_));
}

}  // namespace heddle
