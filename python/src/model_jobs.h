// Jobs of a model's runner: an answer whose tokens are taken one by one, and the logits of given tokens.
#pragma once

#include <deque>
#include <utility>

#include "heddle/session/answer.h"
#include "python/src/runner.h"

namespace heddle::python {

struct Record {
  i32 id = -1, index = 0;
  std::string text, reasoning;  // what became certain with this token
  std::optional<TokenLogprobs> logprobs;
  std::string reason;  // comes with the last token
};

class RecordedAnswer : public Answer, public Progress {
 public:
  RecordedAnswer(AnswerSettings settings, const AskedPrompt& asked, const Tokenizer& tokenizer,
                 bool shares_pages);

  bool shares_pages() const override { return shares_pages_; }
  bool take(i32 token) override;
  void end(bool full) override;
  bool publish() override;

  std::deque<Record> ready;  // under the runner's lock

 private:
  bool shares_pages_;
  std::string piece_, thought_;  // since the last token
  std::vector<Record> made_;
  i32 count_ = 0;
};

// Keeps the logits after each of the given tokens.
class GivenTokens : public BatchJob, public Progress {
 public:
  GivenTokens(std::vector<i32> tokens, i32 vocab);  // not empty

  std::span<const i32> prompt() const override { return tokens_; }
  SamplingSettings sampling() const override { return {}; }
  bool wants_rows() const override { return true; }
  void take_rows(std::span<const float> rows) override {
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  bool take(i32) override { return false; }
  void end(bool) override { ended_ = true; }
  bool publish() override { return ended_; }

  std::vector<float> logits;  // [tokens, vocab], when it has ended

 private:
  std::vector<i32> tokens_;
  bool ended_ = false;
};

}  // namespace heddle::python
