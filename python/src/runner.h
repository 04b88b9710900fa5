// Runs the jobs of one model, one group of jobs after the other: a group's jobs share steps, and nothing else runs meanwhile,
// so that what else is asked for changes no bit of them. It has no thread: a caller that waits runs the steps, also those of
// groups before its own. It knows nothing of Python.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "heddle/engine/batcher.h"

namespace heddle::python {

// The part of a job that its caller sees. All of it is under the runner's lock.
class Progress {
 public:
  virtual ~Progress() = default;
  // Called after each token: hands over what the job made since then. True at the job's end.
  virtual bool publish() = 0;

 private:
  friend class Runner;
  bool ended_ = false;
  std::exception_ptr error_;
};

class Runner {
 public:
  struct Interrupted : std::exception {};

  explicit Runner(std::unique_ptr<Engine> engine);
  // Waits for the step that runs, and frees the engine. Jobs that have not ended fail.
  void close();
  const Engine& engine() const { return *engine_; }  // facts that never change; not when it is closed

  struct Entry {
    std::shared_ptr<BatchJob> job;
    std::shared_ptr<Progress> progress;  // `job`, as its caller sees it
  };
  // Each prompt fits the engine's context.
  void add(std::vector<Entry> group);
  void drop(const Progress& progress);  // as if it never was; does nothing for one that has ended

  struct Wait {
    // Called under the lock, until it returns true. Without it only the job's end counts, and a launch makes many tokens.
    std::function<bool()> look = {};
    // Called every kPeriod, without the lock; true ends the waiting.
    std::function<bool()> interrupted = {};
  };
  static constexpr std::chrono::milliseconds kPeriod{20};  // a person takes this for at once
  // Runs steps, or waits for the thread that runs them, until look() returns true or the job has ended. Throws the job's
  // error, or Interrupted.
  void wait(const Progress& progress, const Wait& wait);

  // Replaces weights between two steps. Jobs that have begun fail once nothing can be refused any more; those that wait for
  // their turn are of the new weights. Throws as Engine::update_weights().
  void update_weights(const WeightValues& values);

  // Called by the engine while a step runs, in the thread that runs it: true if nobody needs the step any more.
  bool ends_step();

  // look() at once, under the lock.
  bool look(const std::function<bool()>& look);
  BatchStats stats();

 private:
  // A thread in wait().
  struct Caller {
    const Wait& wait;
    std::chrono::steady_clock::time_point asked = std::chrono::steady_clock::now();
    bool stopped = false;
    bool is_interrupted();  // without the lock: interrupted() may wait for whoever holds it
  };
  void run_step(std::unique_lock<std::mutex>& lock, Caller& caller);
  void take_changes();
  void publish();  // under the lock
  void fail_all(const std::exception_ptr& error);
  void drop_dropped();
  bool pause();

  std::mutex mutex_;
  std::condition_variable turn_;           // a step is done, or a token of a longer one is there
  std::deque<std::vector<Entry>> groups_;  // that wait
  std::vector<Entry> live_;                // the running group's
  std::vector<std::shared_ptr<BatchJob>> dropped_;
  BatchStats stats_;
  bool closing_ = false;
  Caller* running_ = nullptr;  // runs a step, without the lock
  // Steps of a launch for a caller that takes token by token: as many as the time of the last ones allows. A launch costs
  // a GPU 50 us.
  i32 burst_ = 1;
  static constexpr std::chrono::milliseconds kBurst{4};  // nobody sees tokens come together within it

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Batcher> batcher_;
};

}  // namespace heddle::python
