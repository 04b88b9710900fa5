// Jobs of a model's runner: an answer whose tokens are taken one by one, and the logits of given tokens.
#pragma once

#include <deque>
#include <utility>

#include "heddle/session/answer.h"
#include "python/src/runner.h"

namespace heddle::python {

struct Record {
  i32 id = -1, index = 0;
  std::string text;  // what became certain with this token
  std::optional<TokenLogprobs> logprobs;
  std::string reason;  // of the last token
};

class RecordedAnswer : public Answer, public Progress {
 public:
  RecordedAnswer(AnswerSettings settings, std::vector<i32> prompt, const Tokenizer& tokenizer,
                 bool shares_pages);

  bool shares_pages() const override { return shares_pages_; }
  bool take(i32 token) override;
  void end(bool full) override;
  bool publish() override;

  std::deque<Record> ready;  // under the runner's lock

 private:
  bool shares_pages_;
  std::string piece_;
  std::vector<Record> made_;
  i32 count_ = 0;
};

// Puts the given tokens in the place of those that are chosen, and keeps the logits after each.
class GivenTokens : public BatchJob, public Progress {
 public:
  explicit GivenTokens(std::vector<i32> tokens);  // not empty

  std::span<const i32> prompt() const override { return std::span(tokens_).first(1); }
  SamplingSettings sampling() const override { return {}; }
  bool wants_logits() const override { return true; }
  bool shares_pages() const override { return false; }
  i32 choose(std::span<const float> logits, i32 chosen) override;
  bool take(i32) override { return read_ < tokens_.size(); }
  void end(bool) override { ended_ = true; }
  bool publish() override { return ended_; }

  std::vector<float> logits;  // [tokens, vocab], when it has ended

 private:
  std::vector<i32> tokens_;
  size_t read_ = 0;
  bool ended_ = false;
};

}  // namespace heddle::python
