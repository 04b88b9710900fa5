// Runs the requests of any number of callers on one engine. One thread owns the batcher (engine/batcher.h), and takes what
// callers change between two steps, or between two tokens of a launch; no caller waits for it but in Ticket::wait(). Requests share
// steps, enter by priority, and give their pages back when pages run out. It neither owns the engine nor knows what jobs make
// of their tokens.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/progress.h"
#include "heddle/base/thread.h"
#include "heddle/engine/batcher.h"

namespace heddle {

using ServiceTime = std::chrono::steady_clock::time_point;

class Ticket;

struct Request {
  std::shared_ptr<BatchJob> job;  // the service's thread calls it, until the ticket has ended
  i32 priority = 0;               // higher ones first; equal ones as they came
  // From then on it gets no more tokens, whether it runs or still waits.
  std::optional<ServiceTime> deadline = {};
  // Called after each change that Ticket::wait() would see, on the thread that makes it; must not wait for anything.
  std::function<void(const Ticket&)> on_change = {};
};

enum class TicketState : u8 {
  kQueued,
  kRunning,
  kPutOff,    // has begun, and waits for pages or for its reader
  kFinished,  // from here on it has ended
  kCancelled,
  kFailed,  // Ticket::error() says by what
  kExpired,
};

struct TicketWait {
  std::function<bool()> look = {};  // see Ticket::look()
  // Called every Ticket::kPeriod, without the lock; true ends the waiting.
  std::function<bool()> interrupted = {};
};

// The request's place, for its caller. Any thread may call it, also when the service is gone.
class Ticket : private JobFollower {
 public:
  TicketState state() const { return state_; }
  bool has_ended() const { return state_ >= TicketState::kFinished; }
  std::exception_ptr error() const;
  // Ends it at once, in whatever state it is; its pages are free after the step that runs. Does nothing when it has ended.
  void cancel();

  // Calls look() with the ticket's lock, and returns its result. look() may take what the job made for a reader: a job that this
  // makes ready again goes on.
  bool look(const std::function<bool()>& look);
  static constexpr std::chrono::milliseconds kPeriod{20};  // a person takes this for at once
  // Calls look() after each change. Returns true when look() did, or the request has ended, and false when the waiting was
  // interrupted.
  bool wait(const TicketWait& wait = {});

 private:
  friend class Service;
  struct Wake {  // the service's thread
    std::mutex mutex;
    std::condition_variable called;
    bool changed = false;
    void call();
  };
  Ticket(Request request, std::shared_ptr<Wake> service)
      : request_(std::move(request)), service_(std::move(service)) {}
  bool end(TicketState state, const std::exception_ptr& error = nullptr);
  bool look_locked(const std::function<bool()>& look);
  void change(TicketState state);
  // JobFollower, on the service's thread
  void runs() override { change(TicketState::kRunning), in_batch_ = true; }
  void is_put_off() override { change(TicketState::kPutOff), in_batch_ = false; }
  void took() override { change(TicketState::kRunning); }
  void ended(const std::exception_ptr& error) override {
    outcome_ = {error ? TicketState::kFailed : TicketState::kFinished, error};
  }

  const Request request_;
  const std::shared_ptr<Wake> service_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<TicketState> state_ = TicketState::kQueued;  // written with the lock
  std::exception_ptr error_;
  int lookers_ = 0;  // threads in wait() that have a look()
  // The service's thread alone uses these two.
  bool in_batch_ = false;
  std::optional<std::pair<TicketState, std::exception_ptr>> outcome_;  // the running step made it
};

struct ServiceOptions {
  size_t max_waiting = 0;  // requests that wait, at most; 0: any number
  BatchOptions batch = {};
  // Hears of work such as compiling; what it throws fails the requests that run. Empty: what listens on the thread that makes
  // the service.
  OnProgress on_progress = {};
  std::function<ServiceTime()> now = std::chrono::steady_clock::now;
};

struct ServiceStats {
  BatchStats batch;
  size_t waiting = 0, running = 0;  // requests
  i32 free_pages = 0;
};

// As many requests wait as may.
class QueueFull : public Error {
  using Error::Error;
};

class Service {
 public:
  // `engine` must outlive the service, and nobody else uses it meanwhile.
  explicit Service(Engine& engine, ServiceOptions options = {});
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service() { stop(); }

  // Requests that come together, for whatever shares steps. Throws QueueFull, or Error when the service is stopped.
  std::vector<std::shared_ptr<Ticket>> submit(std::vector<Request> requests);
  // They share steps with each other alone, so that no other request changes how they are rounded.
  std::vector<std::shared_ptr<Ticket>> submit_apart(std::vector<Request> requests);

  // Replaces weights between two steps, as Engine::update_weights(), whose errors it throws. Requests that have begun fail once
  // nothing can be refused any more; those that wait for their turn are of the new weights. Not to be called by a job.
  void update_weights(const WeightValues& values);
  // Takes no more requests. Those that are there may end within `drain`, and are cancelled then. Joins the thread; not to be
  // called by a job.
  void stop(std::chrono::milliseconds drain = std::chrono::milliseconds(0));
  ServiceStats stats() const;

  // For ExecutorOptions::cancelled: true if nobody waits for what the step that runs makes.
  bool ends_step() const;

 private:
  struct Entry {
    std::shared_ptr<Ticket> ticket;
    u64 company = 0;
  };
  struct Update {
    const WeightValues& values;
    std::promise<void> done = {};
  };
  std::vector<std::shared_ptr<Ticket>> submit_to(u64 company, std::vector<Request> requests);
  void run();
  bool take_changes(bool wait);
  void take(Update& update);
  void tell_ends();
  void remove_ended();
  bool pause();
  void publish();  // with the lock

  Engine& engine_;
  const ServiceOptions options_;
  Batcher batcher_;
  std::vector<std::shared_ptr<Ticket>> live_;  // the thread alone uses these three
  ServiceTime next_deadline_ = ServiceTime::max();
  bool updating_ = false;

  const std::shared_ptr<Ticket::Wake> wake_ = std::make_shared<Ticket::Wake>();
  // With the lock of wake_:
  std::vector<Entry> arrived_;
  std::vector<std::shared_ptr<Update>> updates_;  // their callers wait
  ServiceStats stats_;
  bool stopping_ = false, cancelling_ = false, is_done_ = false;
  std::condition_variable done_;

  std::atomic<u64> companies_ = 0;
  std::mutex joining_;
  std::optional<Thread> thread_;
};

}  // namespace heddle
