#include "heddle/engine/batcher.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {

i32 BatchJob::choose(std::span<const float>, i32 chosen) {
  return chosen;
}

void Batcher::add(std::shared_ptr<BatchJob> job) {
  const size_t size = job->prompt().size(), answer = job->wants_rows() ? 0 : 1;
  require(size > 0 && size + answer <= size_t(engine_.max_context()),
          "[batch] a prompt has {} tokens; must be 1 to {}, {}the context", size,
          size_t(engine_.max_context()) - answer, answer ? "one less than " : "");
  waiting_.push_back(std::move(job));
}

void Batcher::drop(const BatchJob& job) {
  std::erase_if(waiting_, [&](const auto& waiting) { return waiting.get() == &job; });
  std::erase_if(running_, [&](const Running& running) { return running.job.get() == &job; });
}

// True if another sequence is still reading the same beginning, so that pages will soon hold more of it than
// now.
bool Batcher::is_being_read(std::span<const i32> prompt) const {
  const i32 known = engine_.known(prompt), page = engine_.page_size();
  return std::ranges::any_of(running_, [&](const Running& running) {
    if (!running.reading()) return false;
    const auto other = running.job->prompt();
    const size_t most = std::min(prompt.size() - 1, other.size());
    const auto same = std::mismatch(prompt.begin(), prompt.begin() + i64(most), other.begin()).first;
    return i32(same - prompt.begin()) / page * page > known;
  });
}

void Batcher::admit() {
  for (auto at = waiting_.begin(); at != waiting_.end() && i32(running_.size()) < engine_.max_sequences();) {
    const auto prompt = (*at)->prompt();
    const bool rows = (*at)->wants_rows(), shares = (*at)->shares_pages() && !rows;
    if (!running_.empty() && running_.front().job->wants_rows() != rows) break;
    if (shares && is_being_read(prompt)) {
      ++at;
      continue;
    }
    const auto known = shares ? prompt : std::span<const i32>();
    Running running{.job = *at, .sequence = {engine_, engine_.open((*at)->sampling(), known)}};
    running.read = engine_.length(running.sequence.id());
    stats_.shared_tokens += u64(running.read);
    running_.push_back(std::move(running));
    at = waiting_.erase(at);
  }
  stats_.most_sequences = std::max(stats_.most_sequences, i32(running_.size()));
}

// One request for each running sequence that takes part, in their order.
std::vector<StepRequest> Batcher::requests() {
  const auto answering = std::ranges::count_if(running_, [](const Running& r) { return !r.reading(); });
  const bool rows = !running_.empty() && running_.front().job->wants_rows();
  i32 left = engine_.max_rows(rows) - i32(answering);
  std::vector<StepRequest> made;
  for (const Running& running : running_) {
    StepRequest request{running.sequence.id(), std::span(&running.token, 1), true};
    if (running.reading()) {
      const auto rest = running.job->prompt().subspan(size_t(running.read));
      const size_t count = std::min(rest.size(), size_t(left));
      request.tokens = rest.first(count);
      request.wanted = rows || count == rest.size();
      left -= i32(count);
    }
    if (!request.tokens.empty()) made.push_back(request);
  }
  return made;
}

// `length`: positions of the sequence so far, without the token's own.
bool Batcher::go_on(Running& running, std::span<const float> logits, i32 chosen, i32 length) {
  running.token = running.job->choose(logits, chosen);
  ++stats_.new_tokens;
  const bool more = running.job->take(running.token);
  const bool full = length >= engine_.max_context();
  if (more && !full) return true;
  running.job->end(more);
  return false;
}

// The number of steps that one call may take.
i32 Batcher::steps_of(std::span<const StepRequest> made, i32 most) const {
  if (std::ranges::any_of(running_, &Running::reading) || made.size() != running_.size()) return 1;
  i32 steps = most;
  for (const Running& running : running_)
    steps =
        std::min({steps, running.job->left(), engine_.max_context() - engine_.length(running.sequence.id())});
  return std::max(steps, 1);
}

void Batcher::step(i32 most) {
  admit();
  const std::vector<StepRequest> made = requests();
  if (made.empty()) return;
  const bool logits = std::ranges::any_of(running_, [](const Running& r) { return r.job->wants_logits(); });
  const i32 steps = logits ? 1 : steps_of(made, most);
  ++stats_.launches;
  try {
    if (running_.front().job->wants_rows())
      step_rows(made);
    else if (steps > 1)
      step_many(made, steps);
    else
      step_once(made, logits);
  } catch (const NotFiniteLogits& error) {
    for (const Running& running : running_)
      if (const std::string name = running.job->name();
          running.sequence.id() == error.sequence && !name.empty())
        throw NotFiniteLogits(error.sequence, fmt::format("[{}] {}", name, error.what()));
    throw;
  } catch (const Cancelled&) {  // to end sooner
    if (!pause_()) throw;
  }
}

void Batcher::step_once(std::span<const StepRequest> made, bool logits) {
  const StepResult result = engine_.step(made, {.logits = logits});
  ++stats_.steps;
  std::vector<Running> stay;
  std::span<const float> rest = result.logits;
  size_t at = 0;
  for (Running& running : running_) {
    const bool took_part = at < made.size() && made[at].sequence == running.sequence.id();
    const bool wanted = took_part && made[at].wanted;
    if (took_part && running.reading()) {
      running.read += i32(made[at].tokens.size());
      stats_.prompt_tokens += made[at].tokens.size();
    }
    const size_t count = wanted && logits ? size_t(engine_.info().vocab) : 0;
    if (!wanted ||
        go_on(running, rest.first(count), result.sampled[at], engine_.length(running.sequence.id())))
      stay.push_back(std::move(running));
    rest = rest.subspan(count);
    at += size_t(took_part);
  }
  running_ = std::move(stay);
}

void Batcher::step_rows(std::span<const StepRequest> made) {
  const StepResult result = engine_.step(made, {.all_logits = true});
  ++stats_.steps;
  std::vector<Running> stay;
  std::span<const float> rest = result.logits;
  size_t at = 0;
  for (Running& running : running_) {
    if (at < made.size() && made[at].sequence == running.sequence.id()) {
      const size_t rows = made[at++].tokens.size(), count = rows * size_t(engine_.info().vocab);
      running.read += i32(rows);
      stats_.prompt_tokens += rows;
      running.job->take_rows(rest.first(count));
      rest = rest.subspan(count);
    }
    if (running.reading())
      stay.push_back(std::move(running));
    else
      running.job->end(false);
  }
  running_ = std::move(stay);
}

void Batcher::step_many(std::span<const StepRequest> made, i32 steps) {
  std::vector<i32> ends, lengths, first;  // requests point to tokens that change meanwhile
  std::vector<StepRequest> requests(made.begin(), made.end());
  first.reserve(requests.size());
  for (StepRequest& request : requests) {
    first.push_back(request.tokens[0]);
    request.tokens = std::span(&first.back(), 1);
  }
  for (const Running& running : running_) {
    const auto these = running.job->ends();
    ends.insert(ends.end(), these.begin(), these.end());
    lengths.push_back(engine_.length(running.sequence.id()));
  }
  std::vector<bool> ended(running_.size());
  const auto take = [&](std::span<const i32> chosen) {
    ++stats_.steps;
    for (size_t i = 0; i < running_.size(); ++i) ended[i] = !go_on(running_[i], {}, chosen[i], ++lengths[i]);
    return std::ranges::find(ended, true) == ended.end() && !pause_();
  };
  engine_.step(requests, {.steps = steps, .logits = false, .ends = ends, .on_tokens = take});
  std::vector<Running> stay;
  for (size_t i = 0; i < running_.size(); ++i)
    if (!ended[i]) stay.push_back(std::move(running_[i]));
  running_ = std::move(stay);
}

}  // namespace heddle
