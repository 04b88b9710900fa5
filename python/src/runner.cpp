#include "python/src/runner.h"

#include <algorithm>
#include <utility>

#include "heddle/base/error.h"

namespace heddle::python {

namespace {

[[noreturn]] void fail_closed() {
  fail(ErrorCode::kInvalidArgument, "[model] it is closed; heddle.load opens it again");
}

}  // namespace

Runner::Runner(std::unique_ptr<Engine> engine)
    : engine_(std::move(engine)), batcher_(std::make_unique<Batcher>(*engine_, [this] { return pause(); })) {}

void Runner::close() {
  std::unique_lock lock(mutex_);
  closing_ = true;
  turn_.wait(lock, [this] { return !running_; });
  batcher_.reset();
  engine_.reset();
  turn_.notify_all();
}

void Runner::add(std::vector<Entry> group) {
  const std::lock_guard lock(mutex_);
  if (closing_) fail_closed();
  groups_.push_back(std::move(group));
}

void Runner::drop(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  const auto is_it = [&](const Entry& entry) { return entry.progress.get() == &progress; };
  for (auto& group : groups_) std::erase_if(group, is_it);
  const auto found = std::ranges::find_if(live_, is_it);
  if (found == live_.end()) return;
  dropped_.push_back(std::move(found->job));
  live_.erase(found);
}

bool Runner::Caller::is_interrupted() {
  if (const auto now = std::chrono::steady_clock::now(); !stopped && now - asked >= kPeriod) {
    asked = now;
    stopped = wait.interrupted && wait.interrupted();
  }
  return stopped;
}

void Runner::wait(const Progress& progress, const Wait& wait) {
  Caller caller{wait};
  std::unique_lock lock(mutex_);
  for (;;) {
    if (wait.look && wait.look()) return;
    if (progress.error_) std::rethrow_exception(progress.error_);
    if (progress.ended_) return;
    if (closing_) fail_closed();
    if (running_)
      turn_.wait_for(lock, kPeriod);
    else
      run_step(lock, caller);
    lock.unlock();
    if (caller.is_interrupted()) throw Interrupted{};
    lock.lock();
  }
}

void Runner::run_step(std::unique_lock<std::mutex>& lock, Caller& caller) {
  take_changes();
  running_ = &caller;
  lock.unlock();
  std::exception_ptr error;
  const auto begin = std::chrono::steady_clock::now();
  const u64 before = batcher_->stats().steps;
  try {
    batcher_->step(caller.wait.look ? burst_ : Engine::kMostSteps);
  } catch (...) {
    error = std::current_exception();
  }
  if (const u64 steps = batcher_->stats().steps - before; steps > 0) {
    const auto each = (std::chrono::steady_clock::now() - begin) / steps;
    burst_ = i32(std::clamp<i64>(kBurst / std::max(each, decltype(each)(1)), 1, Engine::kMostSteps));
  }
  lock.lock();
  running_ = nullptr;
  if (error) fail_all(error);
  publish();
}

void Runner::update_weights(const WeightValues& values) {
  const Wait nothing;
  Caller caller{nothing};
  std::unique_lock lock(mutex_);
  turn_.wait(lock, [this] { return !running_; });
  if (closing_) fail_closed();
  running_ = &caller;
  lock.unlock();
  const auto fail_begun = [this] {
    const std::lock_guard begun(mutex_);
    drop_dropped();
    fail_all(std::make_exception_ptr(
        Error(ErrorCode::kInvalidArgument,
              "[model] its weights were updated before this answer ended; ask for it again")));
  };
  std::exception_ptr error;
  try {
    engine_->update_weights(values, fail_begun);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  running_ = nullptr;
  turn_.notify_all();
  if (error) std::rethrow_exception(error);
}

void Runner::drop_dropped() {
  for (const auto& job : dropped_) batcher_->drop(*job);
  dropped_.clear();
}

void Runner::take_changes() {
  drop_dropped();
  while (live_.empty() && !groups_.empty()) {
    live_ = std::move(groups_.front());
    groups_.pop_front();
    for (const Entry& entry : live_) batcher_->add(entry.job);
  }
}

// After each token of a launch that makes many.
bool Runner::pause() {
  {
    const std::lock_guard lock(mutex_);
    publish();
    if (closing_ || !dropped_.empty()) return true;
  }
  return running_->is_interrupted();
}

bool Runner::ends_step() {
  {
    const std::lock_guard lock(mutex_);
    if (closing_ || live_.empty()) return true;
  }
  return running_->is_interrupted();
}

void Runner::publish() {
  std::erase_if(live_, [](Entry& entry) { return entry.progress->ended_ = entry.progress->publish(); });
  stats_ = batcher_->stats();
  turn_.notify_all();
}

void Runner::fail_all(const std::exception_ptr& error) {
  for (const Entry& entry : live_) {
    batcher_->drop(*entry.job);
    entry.progress->error_ = error;
  }
  live_.clear();
}

bool Runner::look(const std::function<bool()>& look) {
  const std::lock_guard lock(mutex_);
  return look();
}

BatchStats Runner::stats() {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace heddle::python
