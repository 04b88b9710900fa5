#include "heddle/engine/batcher.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/ir/row_classes.h"

namespace heddle {

i32 BatchJob::choose(std::span<const float>, i32 chosen) {
  return chosen;
}

std::span<const i32> Batcher::Member::tokens(i32 end) const {
  if (read >= prompt_size()) return std::span(chosen).subspan(size_t(read - prompt_size()), 1);
  return job->prompt().subspan(size_t(read), size_t(end - read));
}

void Batcher::add(std::shared_ptr<BatchJob> job, BatchPlace place) {
  const size_t size = job->prompt().size(), answer = job->wants_rows() ? 0 : 1;
  require(size > 0 && size + answer <= size_t(engine_.max_context()),
          "[batch] a prompt has {} tokens; must be 1 to {}, {}the context", size,
          size_t(engine_.max_context()) - answer, answer ? "one less than " : "");
  put_in_line({.job = std::move(job), .place = std::move(place), .arrival = arrivals_++});
}

void Batcher::put_in_line(Member member) {
  waiting_.insert(std::ranges::upper_bound(waiting_, member.turn(), {}, &Member::turn), std::move(member));
}

void Batcher::drop(const BatchJob& job) {
  const auto is_it = [&](const Member& member) { return member.job.get() == &job; };
  std::erase_if(waiting_, is_it);
  std::erase_if(running_, is_it);
}

// True if another sequence is still reading the same beginning, so that pages will soon hold more of it than
// now.
bool Batcher::is_being_read(std::span<const i32> prompt) const {
  if (engine_.info().recurrent) return false;  // no sequence begins with another's pages
  const i32 known = engine_.known(prompt), page = engine_.page_size();
  return std::ranges::any_of(running_, [&](const Member& running) {
    if (!running.reading() || !running.is_ready()) return false;
    const auto other = running.job->prompt();
    const size_t most = std::min(prompt.size() - 1, other.size());
    const auto same = std::mismatch(prompt.begin(), prompt.begin() + i64(most), other.begin()).first;
    return i32(same - prompt.begin()) / page * page > known;
  });
}

// Pages are there for all that is known of each sequence and for a page more, so that none is put off soon.
bool Batcher::has_room(const Member& next) const {
  const auto wanted = [&](const Member& member) {
    const SequenceId id = member.sequence->id();
    const i32 positions = std::min(member.size() + engine_.page_size(), engine_.max_context());
    const i32 most = engine_.max_held_pages() - engine_.held_pages(id);
    return std::max(std::min(engine_.missing_pages(id, positions), most), 0);
  };
  i64 pages = wanted(next);
  for (const Member& running : running_) pages += wanted(running);
  return running_.empty() || pages <= engine_.free_pages();
}

// False if it has to wait for pages.
bool Batcher::open(Member& next) {
  std::vector<i32> known;
  if (next.job->shares_pages() && !next.job->wants_rows()) {
    known.assign(next.job->prompt().begin(), next.job->prompt().end());
    known.insert(known.end(), next.chosen.begin(), next.chosen.end());
  }
  SamplingSettings sampling = next.job->sampling();
  sampling.chosen = next.chosen;
  next.is_plain = sampling.is_plain() && !next.job->wants_logits() && !next.job->wants_rows() &&
                  !next.job->is_constrained();
  const SequenceId id = engine_.open(sampling, known);
  next.sequence.emplace(engine_, id);
  if (!has_room(next)) return next.sequence.reset(), false;
  next.read = engine_.length(id);
  if (next.reached == 0) {
    stats_.shared_tokens += u64(next.read);
    next.job->begin(next.read);
  }
  stats_.again_tokens += u64(std::max(next.reached - next.read, 0));
  return true;
}

// The one to give its pages to `next` (null: to whoever needs them most), or null: one that is not ready, or else the last
// to come of those with the lowest priority.
Batcher::Member* Batcher::to_put_off(const Member* next) {
  const auto is_later = [](const Member& a, const Member& b) {
    return a.is_ready() != b.is_ready() ? b.is_ready() : a.turn() > b.turn();
  };
  Member* found = nullptr;
  for (Member& running : running_) {
    if (running.job->wants_rows()) continue;  // rows that were taken cannot be taken again
    if (next && running.is_ready() && running.place.priority >= next->place.priority) continue;
    if (!found || is_later(running, *found)) found = &running;
  }
  return found;
}

void Batcher::put_off(Member& member) {
  const auto at = running_.begin() + (&member - running_.data());
  Member out = std::move(*at);
  running_.erase(at);
  out.sequence.reset();
  out.reached = std::max(out.reached, std::exchange(out.read, 0));
  ++stats_.put_off;
  if (out.place.follower) out.place.follower->is_put_off();
  put_in_line(std::move(out));
}

// Puts off the sequences whose pages hold less than their jobs took, after a step that ended early.
void Batcher::settle() {
  for (size_t i = running_.size(); i-- > 0;)
    if (engine_.length(running_[i].sequence->id()) != running_[i].read) put_off(running_[i]);
}

// The one whose turn is first, of those that are ready. It takes part in the next step, with those that share its steps.
const Batcher::Member* Batcher::leader() const {
  const Member* found = nullptr;
  for (const Member& running : running_)
    if (running.is_ready() && (!found || running.turn() < found->turn())) found = &running;
  return found;
}

void Batcher::admit() {
  for (size_t at = 0; at < waiting_.size();) {
    Member& next = waiting_[at];
    const bool shares = next.job->shares_pages() && !next.job->wants_rows();
    if (!next.is_ready() || (shares && is_being_read(next.job->prompt()))) {
      ++at;
      continue;
    }
    const Member* const first = leader();
    if (first && !next.shares_steps_with(*first) && next.place.priority <= first->place.priority) break;
    if (i32(running_.size()) < engine_.max_sequences() && open(next)) {
      running_.push_back(std::move(next));
      waiting_.erase(waiting_.begin() + i64(at));
      if (const auto& follower = running_.back().place.follower) follower->runs();
      continue;
    }
    Member* const other = to_put_off(&next);
    if (!other) break;
    put_off(*other);
    at = 0;
  }
}

// The parts of the next step, in the order of running_.
std::vector<Batcher::Part> Batcher::parts() {
  const Member* const first = leader();
  if (!first) return {};
  i32 left = engine_.max_rows(first->job->wants_rows());
  std::vector<i32> ends(running_.size());
  for (const bool reading : {false, true}) {  // prompts get the rows that are left
    const bool is_shared = std::ranges::any_of(ends, [](i32 end) { return end > 0; });
    if (reading && is_shared && options_.prompt_rows > 0) left = std::min(left, options_.prompt_rows);
    for (size_t i = 0; i < running_.size(); ++i) {
      const Member& running = running_[i];
      if (running.reading() != reading || !running.is_ready() || !running.shares_steps_with(*first)) continue;
      // Chosen tokens are read again as they were made, one at a time: on a GPU, steps of more rows may round in another way.
      const i32 last = std::max(running.prompt_size(), running.read + 1);
      const i32 rows = std::min(left, last - running.read);
      if (rows > 0) ends[i] = running.read + rows, left -= rows;
    }
  }
  std::vector<Part> made;
  for (size_t i = 0; i < running_.size(); ++i)
    if (ends[i] > 0) made.push_back({&running_[i], ends[i]});
  return made;
}

i64 Batcher::missing_pages(std::span<const Part> parts, i32 steps) const {
  i64 pages = 0;
  for (const Part& part : parts)
    pages += engine_.missing_pages(part.member->sequence->id(), part.end + steps - 1);
  return pages;
}

// The number of steps that one call may take.
i32 Batcher::steps_of(std::span<const Part> parts, i32 most) const {
  const auto reads = [&](const Member& member) {
    return member.reading() && member.is_ready() && member.shares_steps_with(*parts[0].member);
  };
  if (std::ranges::any_of(running_, reads)) return 1;
  i32 steps = most;
  for (const Part& part : parts) {
    const BatchJob& job = *part.member->job;
    if (job.wants_logits() || job.is_constrained() || part.member->reading()) return 1;
    steps = std::min({steps, part.member->job->left(), engine_.max_context() - part.member->read});
    if (options_.draft && part.member->is_plain) steps = std::min(steps, part.member->draft.pause());
  }
  steps = std::max(steps, 1);
  while (steps > 1 && missing_pages(parts, steps) > engine_.free_pages()) --steps;
  return steps;
}

bool Batcher::step(i32 most) {
  admit();
  std::vector<Part> parts = this->parts();
  while (missing_pages(parts, 1) > engine_.free_pages()) {
    Member* const other = to_put_off(nullptr);
    require(other && running_.size() > 1, "[batch] a step needs {} pages and {} are free; others hold them",
            missing_pages(parts, 1), engine_.free_pages());
    put_off(*other);
    parts = this->parts();
  }
  if (parts.empty()) return false;
  const bool rows = parts[0].member->job->wants_rows();
  std::vector<StepRequest> made;
  for (const auto& [member, end] : parts) {
    const bool is_last = end == member->size();
    made.push_back({.sequence = member->sequence->id(),
                    .tokens = member->tokens(end),
                    .wanted = rows || is_last,
                    .logits = rows || member->job->wants_logits(),
                    .mask = is_last && !rows ? member->job->mask() : std::span<const u32>()});
  }
  const auto guesses = this->guesses(parts);
  const i32 steps = steps_of(parts, most);
  ++stats_.launches;
  stats_.most_sequences = std::max(stats_.most_sequences, i32(parts.size()));
  try {
    if (!guesses.empty())
      step_guesses(parts, guesses);
    else if (steps > 1)
      step_many(parts, made, steps);
    else
      step_once(parts, made);
  } catch (const Cancelled&) {  // to end sooner
    settle();
    if (!pause_()) throw;
  } catch (...) {
    settle();
    throw;
  }
  std::erase_if(running_, [](const Member& member) { return member.ended; });
  if (engine_.info().recurrent || !guesses.empty()) settle();
  return true;
}

void Batcher::fail(Member& member, const std::exception_ptr& error) {
  if (!member.place.follower) std::rethrow_exception(error);
  member.ended = true;
  member.place.follower->ended(error);
}

namespace {

// NotFiniteLogits with the name of the job.
std::exception_ptr named(const std::exception_ptr& error, const std::string& name) {
  if (name.empty()) return error;
  try {
    std::rethrow_exception(error);
  } catch (const NotFiniteLogits& known) {
    return std::make_exception_ptr(
        NotFiniteLogits(known.sequence, fmt::format("[{}] {}", name, known.what())));
  }
}

}  // namespace

// Hands over what a step made for the job, by `hand(job)`, which returns false if the job has ended.
template <class Hand>
bool Batcher::hand_over(Member& member, Hand&& hand) {
  try {
    member.ended = !hand(*member.job);
    member.job->publish();
  } catch (...) {
    fail(member, std::current_exception());
    return false;
  }
  if (const auto& follower = member.place.follower) {
    follower->took();
    if (member.ended) follower->ended(nullptr);
  }
  return !member.ended;
}

bool Batcher::go_on(Member& member, std::span<const float> logits, i32 chosen) {
  return hand_over(member, [&](BatchJob& job) {
    member.chosen.push_back(job.choose(logits, chosen));
    member.draft.pass();
    ++stats_.new_tokens;
    const bool more = job.take(member.chosen.back());
    if (more && member.read < engine_.max_context()) return true;
    job.end(more);
    return false;
  });
}

void Batcher::step_once(std::span<const Part> parts, std::span<const StepRequest> made) {
  const bool rows = parts[0].member->job->wants_rows();
  const bool logits =
      rows || std::ranges::any_of(parts, [](const Part& part) { return part.member->job->wants_logits(); });
  const StepResult result = engine_.step(made, {.logits = logits, .all_logits = rows, .fails_alone = true});
  ++stats_.steps;
  std::span<const float> rest = result.logits;
  for (size_t i = 0; i < parts.size(); ++i) {
    Member& member = *parts[i].member;
    const size_t wanted = !made[i].wanted || !made[i].logits ? 0 : rows ? made[i].tokens.size() : 1;
    const auto mine = rest.first(wanted * size_t(engine_.info().vocab));
    rest = rest.subspan(mine.size());
    const i32 end = parts[i].end, in_prompt = std::min(end, member.prompt_size());
    stats_.prompt_tokens += u64(std::max(in_prompt - std::max(member.read, member.reached), 0));
    member.read = end;
    if (result.failed[i])
      fail(member, named(result.failed[i], member.job->name()));
    else if (rows)
      hand_over(member, [&](BatchJob& job) {
        job.take_rows(mine);
        if (end == member.size()) return job.end(false), false;
        return true;
      });
    else if (made[i].wanted)
      go_on(member, mine, result.sampled[i]);
  }
}

void Batcher::step_many(std::span<const Part> parts, std::span<const StepRequest> made, i32 steps) {
  std::vector<i32> ends, first;  // requests point to tokens that change meanwhile
  std::vector<StepRequest> requests(made.begin(), made.end());
  first.reserve(requests.size());
  for (StepRequest& request : requests) {
    first.push_back(request.tokens[0]);
    request.tokens = std::span(&first.back(), 1);
  }
  for (const Part& part : parts) {
    const auto these = part.member->job->ends();
    ends.insert(ends.end(), these.begin(), these.end());
  }
  const auto take = [&](std::span<const i32> chosen) {
    ++stats_.steps;
    bool more = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      ++parts[i].member->read;
      more &= chosen[i] >= 0 && go_on(*parts[i].member, {}, chosen[i]);  // less: the sequence has failed
    }
    return more && !pause_();
  };
  const StepResult result = engine_.step(
      requests, {.steps = steps, .logits = false, .ends = ends, .on_tokens = take, .fails_alone = true});
  for (size_t i = 0; i < parts.size(); ++i)
    if (result.failed[i]) fail(*parts[i].member, named(result.failed[i], parts[i].member->job->name()));
}

// For each part, tokens that may follow; empty: the step goes on without guesses.
std::vector<std::vector<i32>> Batcher::guesses(std::span<const Part> parts) {
  std::vector<std::vector<i32>> made;
  const auto fits = [](const Part& part) { return part.member->is_plain && !part.member->reading(); };
  if (!options_.draft || engine_.info().recurrent || !std::ranges::all_of(parts, fits)) return made;
  const i32 each = kFewStepRows / i32(parts.size()) - 1;
  bool has_some = false;
  i64 pages = 0;
  for (const Part& part : parts) {
    Member& member = *part.member;
    const i32 most = std::min({each, member.job->left() - 1, engine_.max_context() - part.end});
    made.emplace_back();
    if (member.draft.pause() == 0) {
      std::vector<i32> tokens(member.job->prompt().begin(), member.job->prompt().end());
      tokens.insert(tokens.end(), member.chosen.begin(), member.chosen.end());
      made.back() = member.draft.guess(tokens, most);
    }
    has_some |= !made.back().empty();
    pages += engine_.missing_pages(member.sequence->id(), part.end + i32(made.back().size()));
  }
  if (!has_some || pages > engine_.free_pages()) made.clear();
  return made;
}

// Reads the guesses as if they had been chosen, and goes on as long as the logits choose them.
void Batcher::step_guesses(std::span<const Part> parts, std::span<const std::vector<i32>> guesses) {
  std::vector<std::vector<i32>> tokens;
  std::vector<StepRequest> requests;
  for (size_t i = 0; i < parts.size(); ++i) {
    tokens.push_back({parts[i].member->chosen.back()});
    tokens.back().insert(tokens.back().end(), guesses[i].begin(), guesses[i].end());
  }
  for (size_t i = 0; i < parts.size(); ++i)
    requests.push_back({parts[i].member->sequence->id(), tokens[i], true});
  const StepResult result = engine_.step(requests, {.all_logits = true, .fails_alone = true});
  ++stats_.steps;
  std::span<const float> rest = result.logits;
  const size_t vocab = size_t(engine_.info().vocab);
  for (size_t i = 0; i < parts.size(); ++i) {
    Member& member = *parts[i].member;
    const auto rows = rest.first(tokens[i].size() * vocab);
    rest = rest.subspan(rows.size());
    if (result.failed[i]) {
      fail(member, named(result.failed[i], member.job->name()));
      continue;
    }
    size_t right = 0;
    for (bool more = true; more; ++right) {
      const auto logits = rows.subspan(right * vocab, vocab);
      const auto chosen = i32(std::ranges::max_element(logits) - logits.begin());
      ++member.read;
      more = go_on(member, {}, chosen) && right < guesses[i].size() && chosen == guesses[i][right];
    }
    member.draft.learn(guesses[i].size(), --right);
    stats_.guessed_tokens += guesses[i].size(), stats_.right_guesses += right;
    engine_.rewind(member.sequence->id(), member.read);
  }
}

}  // namespace heddle
