#include "heddle/session/answer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "heddle/base/stopwatch.h"
#include "heddle/text/calls/call_form.h"
#include "heddle/text/logits_processors.h"

namespace heddle {

TokenLogprobs logprobs_of(std::span<const float> logits, i32 chosen, size_t count) {
  const double norm = log_sum_exp(logits);
  const auto logprob = [&](i32 token) { return float(double(logits[size_t(token)]) - norm); };
  std::vector<i32> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  count = std::min(count, order.size());
  const auto larger = [&](i32 a, i32 b) {
    const float x = logits[size_t(a)], y = logits[size_t(b)];
    return x != y ? x > y : a < b;
  };
  std::ranges::partial_sort(order, order.begin() + long(count), larger);
  TokenLogprobs made{.chosen = logprob(chosen)};
  for (size_t i = 0; i < count; ++i) made.likeliest.emplace_back(order[i], logprob(order[i]));
  return made;
}

AskedPrompt asked_turn(const ChatTemplate& chat, std::string text, const Tokenizer& tokenizer) {
  AskedPrompt made{.tokens = tokenizer.encode(text, false)};
  made.form = {.after_prompt = false,
               .reasoning = find_reasoning_form(chat.text(), tokenizer),
               .prompt = std::move(text)};
  return made;
}

Answer::Answer(AnswerSettings settings, std::vector<i32> prompt, const Tokenizer& tokenizer,
               const AnswerText& text)
    : settings_(std::move(settings)),
      on_host_(!settings_.sampling.needs_host().empty()),
      prompt_(std::move(prompt)),
      decoder_(tokenizer, true),
      stops_(settings_.stop),
      reader_(text.reasoning, text.prompt, text.calls != nullptr) {
  settings_.validate();
  if (text.after_prompt) decoder_.begin_after(prompt_);
  const auto show = [&](std::string_view mark) {
    if (const auto id = mark.empty() ? std::nullopt : tokenizer.token_to_id(mark)) decoder_.show(*id);
  };
  if (text.reasoning) std::ranges::for_each(text.reasoning->marks(), show);
  if (text.calls) std::ranges::for_each(text.calls->tokens, show);
  // As in transformers, the end of the text is not a bad word.
  std::erase_if(settings_.sampling.bad_words_ids, [&](const std::vector<i32>& word) {
    return word.size() == 1 &&
           std::ranges::find(settings_.eos_token_id, word[0]) != settings_.eos_token_id.end();
  });
  if (const auto grammar = grammar_of(settings_.response_format, tokenizer)) {
    form_.emplace(grammar);
    mask_.resize(size_t(tokenizer.id_limit() + 31) / 32);
    set_mask();
  }
}

// Sets the tokens that may come next: in reasoning, all but ends. False if the form is complete and nothing may follow.
bool Answer::set_mask() {
  if (!form_) return true;
  if (!reader_.is_before_answer()) {
    if (form_->mask(settings_.eos_token_id, mask_)) return true;
    require(form_->is_complete(),
            "[response_format] after \"{}\" no token of this model goes on with the form that the answer "
            "must have",
            text_);
    return false;
  }
  std::ranges::fill(mask_, ~0u);
  for (const i32 end : settings_.eos_token_id)
    if (size_t(end) / 32 < mask_.size()) mask_[size_t(end) / 32] &= ~(1u << (end % 32));
  return true;
}

i32 Answer::choose(std::span<const float> logits, i32 chosen) {
  if (on_host_) {
    if (seen_.empty()) seen_ = prompt_;
    const TextSoFar text = {.tokens = seen_,
                            .prompt = prompt_.size(),
                            .ends = settings_.eos_token_id,
                            .most = prompt_.size() + size_t(settings_.max_tokens),
                            .mask = mask_};
    chosen = choose_token(settings_.sampling, text, logits, u32(seen_.size() - prompt_.size()));
    seen_.push_back(chosen);
  }
  if (settings_.logprobs >= 0) logprobs_.push_back(logprobs_of(logits, chosen, size_t(settings_.logprobs)));
  return chosen;
}

bool Answer::take(i32 token) {
  if (std::ranges::find(settings_.eos_token_id, token) != settings_.eos_token_id.end())
    return end_with("eos");
  tokens_.push_back(token);
  if (form_ && !reader_.is_before_answer()) form_->accept(token);
  emit(reader_.push(stops_.push(decoder_.push(token))));
  if (stops_.stopped()) return end_with("stop");
  if (i32(tokens_.size()) >= settings_.max_tokens) return end_with("length");
  return set_mask() || end_with("eos");
}

void Answer::end(bool full) {
  ended_ = true;
  if (full) reason_ = "context";
  logprobs_.resize(std::min(logprobs_.size(), tokens_.size()));  // the token that ended the text has none
  if (!stops_.stopped()) emit(reader_.push(stops_.push(decoder_.flush()) + stops_.flush()));
  emit(reader_.flush());
  reasoning_.resize(reasoning_.find_last_not_of(" \t\r\n") + 1);
  if (on_end) on_end();
}

bool Answer::end_with(const char* reason) {
  reason_ = reason;
  return false;
}

void Answer::emit(const std::vector<ReasoningReader::Part>& parts) {
  for (const auto& part : parts) {
    (part.is_reasoning ? reasoning_ : text_) += part.text;
    const TextCallback& call = part.is_reasoning ? on_reasoning : on_text;
    if (call) call(part.text);
  }
}

AnswerTimes run_answers(Engine& engine, std::span<const std::shared_ptr<Answer>> answers,
                        const StopCallback& stop, const std::function<void(size_t tokens)>& on_prompt,
                        const BatchOptions& options) {
  Batcher batcher(engine, stop, options);
  for (const auto& answer : answers) batcher.add(answer);
  const auto goes_on = [&] { return !batcher.idle() && !stop(); };
  AnswerTimes times;
  Stopwatch watch;
  while (goes_on() && batcher.stats().new_tokens == 0) {
    batcher.step();
    if (on_prompt) on_prompt(batcher.stats().prompt_tokens);
  }
  times.prompt = watch.seconds();
  watch = {};
  while (goes_on()) batcher.step();
  for (const auto& answer : answers)
    if (!answer->ended()) answer->end(false);
  times.tokens = watch.seconds();
  times.steps = batcher.stats();
  return times;
}

}  // namespace heddle
