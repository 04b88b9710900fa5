#include "heddle/session/service.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "heddle/ir/executor/executor.h"

namespace heddle {

void Ticket::Wake::call() {
  const std::lock_guard lock(mutex);
  changed = true;
  called.notify_one();
}

std::exception_ptr Ticket::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

bool Ticket::end(TicketState state, const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended()) return false;
    state_ = state;
    error_ = error;
    changed_.notify_all();
  }
  if (request_.on_change) request_.on_change(*this);
  return true;
}

void Ticket::change(TicketState state) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended()) return;
    state_ = state;
    if (lookers_ > 0) changed_.notify_all();
  }
  if (request_.on_change) request_.on_change(*this);
}

void Ticket::cancel() {
  if (end(TicketState::kCancelled)) service_->call();
}

bool Ticket::look_locked(const std::function<bool()>& look) {
  const bool was_ready = request_.job->is_ready();
  const bool seen = look();
  if (!was_ready && request_.job->is_ready()) service_->call();
  return seen;
}

bool Ticket::look(const std::function<bool()>& look) {
  const std::lock_guard lock(mutex_);
  return look_locked(look);
}

bool Ticket::wait(const TicketWait& wait) {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  for (auto asked = Clock::now();;) {
    if (wait.look && look_locked(wait.look)) return true;
    if (has_ended()) return true;
    lookers_ += wait.look != nullptr;
    changed_.wait_for(lock, kPeriod);
    lookers_ -= wait.look != nullptr;
    if (!wait.interrupted || Clock::now() - asked < kPeriod) continue;
    lock.unlock();
    if (wait.interrupted()) return false;
    lock.lock();
    asked = Clock::now();
  }
}

Service::Service(Engine& engine, ServiceOptions options)
    : engine_(engine),
      options_(std::move(options)),
      batcher_(
          engine, [this] { return pause(); }, options_.batch) {
  stats_.free_pages = engine.free_pages();
  OnProgress told = options_.on_progress ? options_.on_progress : progress_listener();
  auto started = Thread::try_start([this, told = std::move(told)] {
    const ProgressScope scope([this, &told](const Progress& progress) {
      if (!updating_ && ends_step()) throw Cancelled("[service] nobody waits for this step any more");
      if (told) told(progress);
    });
    run();
  });
  if (!started) fail(ErrorCode::kUnsupported, "[service] {}", threads_refused(1, 0, started.message()));
  thread_ = std::move(started).value();
}

std::vector<std::shared_ptr<Ticket>> Service::submit(std::vector<Request> requests) {
  return submit_to(0, std::move(requests));
}

std::vector<std::shared_ptr<Ticket>> Service::submit_apart(std::vector<Request> requests) {
  return submit_to(++companies_, std::move(requests));
}

std::vector<std::shared_ptr<Ticket>> Service::submit_to(u64 company, std::vector<Request> requests) {
  std::vector<std::shared_ptr<Ticket>> tickets;
  for (Request& request : requests)
    tickets.push_back(std::shared_ptr<Ticket>(new Ticket(std::move(request), wake_)));
  const std::lock_guard lock(wake_->mutex);
  require(!stopping_, "[service] it is stopped; make another one");
  const size_t waiting = stats_.waiting + arrived_.size();
  if (options_.max_waiting > 0 && waiting + tickets.size() > options_.max_waiting)
    throw QueueFull(
        ErrorCode::kUnsupported,
        fmt::format("[service] {} requests wait, and {} more came; at most {} may: ask again later", waiting,
                    tickets.size(), options_.max_waiting));
  for (const auto& ticket : tickets) arrived_.push_back({ticket, company});
  wake_->changed = true;
  wake_->called.notify_one();
  return tickets;
}

void Service::run() {
  for (bool ran = true; take_changes(!ran);) {
    std::exception_ptr fault;
    try {
      ran = batcher_.step();
    } catch (...) {
      ran = true;
      fault = std::current_exception();
    }
    tell_ends();
    if (fault)
      for (const auto& ticket : live_) ticket->end(TicketState::kFailed, fault);
  }
  const std::lock_guard lock(wake_->mutex);
  is_done_ = true;
  done_.notify_all();
}

// Takes what callers changed since the last step; `wait`: when there is something. Returns false when the service ends.
bool Service::take_changes(bool wait) {
  std::vector<Entry> arrived;
  std::vector<std::shared_ptr<Update>> updates;
  bool cancelling = false, stopping = false;
  {
    std::unique_lock lock(wake_->mutex);
    const auto is_changed = [this] { return wake_->changed; };
    if (wait && next_deadline_ == ServiceTime::max())
      wake_->called.wait(lock, is_changed);
    else if (wait)
      wake_->called.wait_until(lock, next_deadline_, is_changed);
    arrived.swap(arrived_);
    updates.swap(updates_);
    stats_.waiting += arrived.size();
    wake_->changed = false;
    cancelling = cancelling_, stopping = stopping_;
  }
  for (const auto& [ticket, company] : arrived) {
    live_.push_back(ticket);
    const Request& request = ticket->request_;
    try {
      if (!ticket->has_ended())
        batcher_.add(request.job, {.priority = request.priority,
                                   .company = company,
                                   .follower = std::shared_ptr<JobFollower>(ticket, ticket.get())});
    } catch (...) {
      ticket->end(TicketState::kFailed, std::current_exception());
    }
  }
  if (cancelling)
    for (const auto& ticket : live_) ticket->end(TicketState::kCancelled);
  remove_ended();
  for (const auto& update : updates) take(*update);
  if (!stopping || !live_.empty()) return true;
  const std::lock_guard lock(wake_->mutex);
  publish();
  return false;
}

void Service::update_weights(const WeightValues& values) {
  const auto update = std::shared_ptr<Update>(new Update{values});
  {
    const std::lock_guard lock(wake_->mutex);
    require(!stopping_, "[service] it is stopped; make another one");
    updates_.push_back(update);
    wake_->changed = true;
    wake_->called.notify_one();
  }
  update->done.get_future().get();
}

void Service::take(Update& update) {
  const auto fail_begun = [this] {
    const auto error = std::make_exception_ptr(
        Error(ErrorCode::kInvalidArgument,
              "[model] its weights were updated before this answer ended; ask for it again"));
    for (const auto& ticket : live_)
      if (ticket->state() != TicketState::kQueued) {
        ticket->end(TicketState::kFailed, error);
        batcher_.drop(*ticket->request_.job);
      }
  };
  updating_ = true;
  std::exception_ptr error;
  try {
    engine_.update_weights(update.values, fail_begun);
  } catch (...) {
    error = std::current_exception();
  }
  updating_ = false;
  error ? update.done.set_exception(error) : update.done.set_value();
}

// After a step, when stats() and the pages say so too.
void Service::tell_ends() {
  {
    const std::lock_guard lock(wake_->mutex);
    publish();
  }
  for (const auto& ticket : live_)
    if (const auto outcome = std::exchange(ticket->outcome_, {}))
      ticket->end(outcome->first, outcome->second);
}

void Service::remove_ended() {
  const ServiceTime now = options_.now();
  next_deadline_ = ServiceTime::max();
  std::erase_if(live_, [&](const auto& ticket) {
    const ServiceTime deadline = ticket->request_.deadline.value_or(ServiceTime::max());
    if (deadline <= now) ticket->end(TicketState::kExpired);
    if (ticket->has_ended()) return batcher_.drop(*ticket->request_.job), true;
    next_deadline_ = std::min(next_deadline_, deadline);
    return false;
  });
}

void Service::publish() {
  stats_ = {.batch = batcher_.stats(),
            .waiting = batcher_.waiting(),
            .running = batcher_.running(),
            .free_pages = engine_.free_pages()};
}

// After each token of a launch that makes many.
bool Service::pause() {
  {
    const std::lock_guard lock(wake_->mutex);
    publish();
    if (wake_->changed) return true;
  }
  return next_deadline_ != ServiceTime::max() && options_.now() >= next_deadline_;
}

bool Service::ends_step() const {
  return std::ranges::none_of(live_, [this](const auto& ticket) {
    const auto& deadline = ticket->request_.deadline;
    return ticket->in_batch_ && !ticket->has_ended() && !(deadline && *deadline <= options_.now());
  });
}

void Service::stop(std::chrono::milliseconds drain) {
  const std::lock_guard joining(joining_);
  {
    std::unique_lock lock(wake_->mutex);
    stopping_ = wake_->changed = true;
    wake_->called.notify_one();
    done_.wait_for(lock, drain, [this] { return is_done_; });
    cancelling_ = wake_->changed = true;
    wake_->called.notify_one();
  }
  thread_.reset();  // joins it
}

ServiceStats Service::stats() const {
  const std::lock_guard lock(wake_->mutex);
  return stats_;
}

}  // namespace heddle
