// Chooses configurations of single calls (OpSpec::configs): those that were found before, or, where the settings ask
// for the best one, by timing them on copies of the call's own tensors.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "heddle/ir/call/op_call.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/tune/choose.h"

namespace heddle::tune {

// The settings of this thread's calls: PickAny, until a scope sets others.
Settings& thread_settings();

// Has the thread's settings be others while it lives.
class SettingsScope {
 public:
  explicit SettingsScope(const Settings& settings) : before_(thread_settings()) {
    thread_settings() = settings;
  }
  ~SettingsScope() { thread_settings() = before_; }
  SettingsScope(const SettingsScope&) = delete;
  SettingsScope& operator=(const SettingsScope&) = delete;

 private:
  const Settings before_;
};

// A configuration that was timed, with how many others.
struct TunedConfig {
  OpConfig config;
  u32 of = 0;
  double ns = 0;
  std::vector<Tried> tried;  // empty: it comes from the store

  std::string summary() const;  // "tuned: config columns=64,rows=64 of 2"
};

// The key of calls that share a configuration: equal dtypes, layouts, attributes, threads, and sizes but for the number of
// rows, which shares one up to the next power of two. A dimension counts rows if it stands nowhere but first.
Key key_of_call(const OpSpec& op, const std::byte* args, const CallSite& site);

// The choices on one device. Safe from any thread.
class OpTuner {
 public:
  // `folder`: where choices are kept; empty: in this process only. `shipped`: folders that are only read.
  OpTuner(const Backend& backend, i32 device, const std::string& folder,
          std::vector<std::string> shipped = {});
  // The one of a device in this process. Its folder is $HEDDLE_TUNED, else `tuned` in heddle's cache folder, or none
  // where there is none. Packages of Python may ship others.
  static OpTuner& of_process(const Backend& backend, i32 device);

  // False where choose() gives null for every call of this thread: nothing was ever timed, and nothing is to be.
  bool may_choose() const { return knows_some_ || thread_settings().policy == Policy::kPickBest; }
  // The configuration of such a call under this thread's settings. Null where the op has none, or under PickAny where none
  // was timed: the call then has the op's default. Under PickBest, times the candidates if nobody has: the call's inputs
  // must be there, its outputs may be. The stream must not be in capture. Calls that the thread has seen take no lock.
  std::shared_ptr<const TunedConfig> choose(const OpSpec& op, const std::byte* args, const CallSite& site);
  // Where the operands of its calls lie; null: in the host's memory.
  MemorySpace* space() const { return space_; }
  Store& store() { return store_; }  // has all choices on this device

 private:
  std::shared_ptr<const TunedConfig> find(const OpSpec& op, const std::byte* args, const CallSite& site,
                                          const Settings& settings);
  static u64 next_number();

  const Backend& backend_;
  MemorySpace* const space_;  // null: the host's memory
  const bool on_gpu_;
  Store store_;
  std::mutex search_;  // held while candidates are timed
  std::atomic<u64> changes_ = 1;
  std::atomic<bool> knows_some_;
  // Names this tuner where threads remember its choices. Its address does not: a later tuner may lie there.
  const u64 number_ = next_number();
};

}  // namespace heddle::tune
