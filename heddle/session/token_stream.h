// Jobs for one reader on another thread: an answer whose tokens wait in a buffer of limited size, and the logits or the
// log-probabilities of given tokens.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "heddle/session/answer.h"

namespace heddle {

struct AnswerToken {
  i32 id = -1, index = 0;
  std::string text, reasoning;  // what became certain with this token
  std::optional<TokenLogprobs> logprobs;
  std::string reason;  // comes with the last token
  std::string stop;    // with it, the stop string that ended the answer
};

struct TokenStreamOptions {
  bool shares_pages = true;
  size_t room = 0;    // tokens that wait for the reader, at most; 0: the whole answer
  bool lazy = false;  // it begins when its reader asks for the first token
};

// The batch calls the functions of Answer. The answer is not ready from when its buffer is full until half of it is free.
class TokenStream : public Answer {
 public:
  TokenStream(AnswerSettings settings, const AskedPrompt& asked, const Tokenizer& tokenizer,
              const TokenStreamOptions& options = {});

  bool shares_pages() const override { return options_.shares_pages; }
  i32 left() const override;
  bool is_ready() const override;
  bool take(i32 token) override;
  void end(bool full) override;
  void publish() override;

  // For the reader, on any thread: the next token that waits, or none.
  std::optional<AnswerToken> next();

 private:
  const TokenStreamOptions options_;
  std::string piece_, thought_;      // since the last token
  std::optional<AnswerToken> made_;  // until publish()
  i32 count_ = 0;
  mutable std::mutex mutex_;
  std::deque<AnswerToken> waiting_;
  bool is_full_ = false, is_asked_ = false;
};

// Keeps the logits after each of the given tokens.
class GivenTokens : public BatchJob {
 public:
  GivenTokens(std::vector<i32> tokens, i32 vocab);  // not empty

  std::span<const i32> prompt() const override { return tokens_; }
  SamplingSettings sampling() const override { return {}; }
  bool wants_rows() const override { return true; }
  void take_rows(std::span<const float> rows) override {
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  bool take(i32) override { return false; }
  void end(bool) override {}

  std::vector<float> logits;  // [tokens, vocab], when it has ended

 private:
  std::vector<i32> tokens_;
};

// Keeps the log-probabilities of given tokens: of each but the first, with `count` of the likeliest.
class ScoredTokens : public BatchJob {
 public:
  ScoredTokens(std::vector<i32> tokens, i32 vocab, size_t count)  // not empty
      : tokens_(std::move(tokens)), vocab_(size_t(vocab)), count_(count) {}

  std::span<const i32> prompt() const override { return tokens_; }
  SamplingSettings sampling() const override { return {}; }
  bool wants_rows() const override { return true; }
  void take_rows(std::span<const float> rows) override;
  bool take(i32) override { return false; }
  void end(bool) override {}

  std::vector<TokenLogprobs> scores;  // when it has ended

 private:
  std::vector<i32> tokens_;
  const size_t vocab_, count_;
};

}  // namespace heddle
