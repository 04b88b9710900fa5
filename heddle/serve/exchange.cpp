#include "heddle/serve/exchange.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kRoom = 1024;            // tokens that wait for a worker
constexpr size_t kMostUnsent = 64 << 10;  // bytes that wait for a client, before its answers pause

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

}  // namespace

Exchange::Exchange(const Exchanges& shared, Asked asked, MakeForm form, RequestRecord record)
    : shared_(shared),
      asked_(std::move(asked)),
      form_(form(asked_, shared_.model)),
      record_(std::move(record)) {
  ++shared_.metrics.answering;
}

Exchange::~Exchange() {
  --shared_.metrics.answering;
  if (is_stalled_) --shared_.metrics.stalled;
}

void Exchange::start(const std::shared_ptr<Reply>& reply) {
  const std::lock_guard lock(mutex_);
  const auto listener = [weak = weak_from_this()](const Ticket&) {
    if (const auto self = weak.lock()) self->schedule();
  };
  std::vector<Request> requests;
  for (const AskedPrompt& prompt : asked_.prompts) {
    AnswerSettings settings = asked_.settings;
    settings.logprobs = asked_.top.value_or(-1);
    for (i32 i = 0; i < asked_.n; ++i, ++settings.sampling.seed) {
      streams_.push_back(std::make_shared<TokenStream>(
          settings, prompt, shared_.model.tokenizer, TokenStreamOptions{.room = asked_.streams ? kRoom : 0}));
      readers_.emplace_back(asked_.calls, form_->call_prefix());
      requests.push_back({.job = streams_.back(), .on_change = listener});
    }
    made_.prompt_tokens += prompt.tokens.size();
  }
  for (size_t i = 0; asked_.echo && asked_.top && i < asked_.prompts.size(); ++i) {
    scored_.push_back(
        std::make_shared<ScoredTokens>(asked_.prompts[i].tokens, shared_.model.vocab, size_t(*asked_.top)));
    requests.push_back({.job = scored_.back(), .on_change = listener});
  }
  made_.answers.resize(streams_.size());
  last_.resize(streams_.size(), record_.came);
  tickets_ = shared_.service.submit(std::move(requests));
  reply_ = reply;
  if (asked_.streams) reply_->begin({.type = "text/event-stream", .body = form_->begin()});
  reply_->watch({.on_gone = [self = shared_from_this()] { self->is_gone_ = true, self->schedule(); },
                 .on_drained =
                     [self = shared_from_this()] {
                       if (self->is_stalled_.exchange(false))
                         --self->shared_.metrics.stalled, self->schedule();
                     }});
  schedule();
}

// Any thread calls it.
void Exchange::schedule() {
  if (!is_scheduled_.exchange(true))
    shared_.workers.post([self = shared_from_this()] {
      self->is_scheduled_ = false;
      self->pump();
    });
}

void Exchange::pump() {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return;
  try {
    if (is_gone_) {
      ++shared_.metrics.left;
      record_.status = 499;
      record_.ended = "left";
      end_all();
    } else if (take_all()) {
      finish();
    }
  } catch (...) {
    fail(api_error_of(std::current_exception()));
  }
}

// Takes what has come; true when all answers have ended.
bool Exchange::take_all() {
  bool all = true;
  for (size_t i = 0; i < streams_.size(); ++i) all &= take(i);
  for (size_t i = streams_.size(); i < tickets_.size(); ++i) {
    const Ticket& ticket = *tickets_[i];
    if (ticket.has_ended() && ticket.error()) std::rethrow_exception(ticket.error());
    all &= ticket.has_ended();
  }
  return all;
}

bool Exchange::take(size_t index) {
  Ticket& ticket = *tickets_[index];
  while (made_.answers[index].reason.empty()) {
    if (asked_.streams && reply_->unsent() > kMostUnsent) {
      if (!is_stalled_.exchange(true)) ++shared_.metrics.stalled;
      // If all has been sent meanwhile, nobody says so any more.
      if (reply_->unsent() > 0 || !is_stalled_.exchange(false)) return false;
      --shared_.metrics.stalled;
    }
    const bool has_ended = ticket.has_ended();
    std::optional<AnswerToken> token;
    ticket.look([&] { return (token = streams_[index]->next()).has_value(); });
    if (token) {
      took(index, std::move(*token));
      continue;
    }
    if (!has_ended) return false;
    if (ticket.error()) std::rethrow_exception(ticket.error());
    if (ticket.state() != TicketState::kFinished)
      throw ApiError(503, "[serve] the server stops, and this answer took too long", {.code = "stopping"});
    made_.answers[index].reason = "context";  // without a token
  }
  return true;
}

void Exchange::took(size_t index, AnswerToken token) {
  MadeAnswer& answer = made_.answers[index];
  const auto now = Clock::now();
  const double seconds = seconds_since(std::exchange(last_[index], now));
  (answer.count == 0 ? shared_.metrics.first_token : shared_.metrics.between_tokens).add(seconds);
  if (record_.first_token == 0) record_.first_token = seconds;
  ++answer.count, ++made_.answer_tokens;
  answer.reasoning_count += !token.reasoning.empty();
  if (token.reason == "eos") token.logprobs.reset();  // the text has nothing of this token
  const std::vector<PartEvent> events = readers_[index].read(token, answer.parts);
  answer.reason = token.reason;
  answer.stop = token.stop;
  if (readers_[index].is_over()) tickets_[index]->cancel();
  const bool was_cut = answer.reason == "length" || answer.reason == "context";
  if (answer.has(AnswerPart::Kind::kCall) &&
      (readers_[index].is_over() || (!answer.reason.empty() && !was_cut)))
    answer.reason = "calls";
  if (asked_.streams) return reply_->write(form_->token(index, token, answer, events));
  if (asked_.top) answer.tokens.push_back(std::move(token));
}

void Exchange::finish() {
  for (const auto& scored : scored_) made_.scores.push_back(scored->scores);
  for (size_t i = 0; i < streams_.size(); i += size_t(asked_.n))
    made_.cached_tokens += size_t(streams_[i]->cached_tokens());
  record_.status = 200;
  record_.ended = reasons();
  if (asked_.streams) {
    reply_->write(form_->end(made_));
    reply_->end();
  } else {
    reply_->send({.body = form_->whole(made_).dump()});
  }
  end_all();
}

void Exchange::fail(const ApiError& error) {
  ++shared_.metrics.failed;
  record_.status = error.status();
  record_.ended = "failed";
  record_.error = error.place().code;
  if (asked_.streams) {
    reply_->write(form_->failed(error));
    reply_->end();
  } else {
    reply_->send(response_of(error, form_->errors()));
  }
  end_all();
}

void Exchange::end_all() {
  has_ended_ = true;
  for (const auto& ticket : tickets_) ticket->cancel();
  shared_.metrics.prompt_tokens += made_.prompt_tokens;
  shared_.metrics.answer_tokens += made_.answer_tokens;
  shared_.metrics.whole.add(seconds_since(record_.came));
  record_.prompt_tokens = made_.prompt_tokens;
  record_.answer_tokens = made_.answer_tokens;
  write_log(shared_.log, record_);
}

std::string Exchange::reasons() const {
  std::string all;
  for (const MadeAnswer& answer : made_.answers)
    if (all.find(answer.reason) == std::string::npos) all += (all.empty() ? "" : ", ") + answer.reason;
  return all;
}

}  // namespace heddle
