#include "heddle/tune/choose.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/ir/executor/executor.h"

namespace heddle::tune {
namespace {

// Runs the action and returns the message of a failure that belongs to the configuration; empty when there is
// none.
template <class Action>
std::string failure_of(Action action) {
  try {
    action();
    return {};
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
    return error.what();
  }
}

Record record_of(const Search& search, const Settings& settings) {
  return {std::nullopt, settings.policy, u32(search.size()), 0, search.failures()};
}

// Compiles everything that the machine asks for at once. Returns the first step that is not a compilation.
Step compile_all(Search& search, const Work& work, int& compilations) {
  std::vector<size_t> asked;
  Step step = search.next();
  for (; step.kind == Step::Kind::kCompile; step = search.next()) asked.push_back(step.sample.candidate);
  compilations += int(asked.size());
  std::vector<std::string> failures(asked.size());
  parallel_for(asked.size(), int(asked.size()), [&](size_t i) {
    failures[i] = failure_of([&] { work.compile(search.candidate(asked[i])); });
  });
  for (size_t i = 0; i < asked.size(); ++i)
    failures[i].empty() ? search.compiled(asked[i]) : search.failed_to_compile(asked[i], failures[i]);
  if (asked.empty()) return step;
  tell_progress({"making", "configurations", size_t(compilations), search.size()});
  return {Step::Kind::kWait, {}};
}

void time(Search& search, const Work& work, const Sample& sample) {
  double ns = 0;
  const std::string why =
      failure_of([&] { ns = work.time(search.candidate(sample.candidate), sample.calls, sample.buffer); });
  why.empty() ? search.timed(ns) : search.failed_to_run(why);
}

}  // namespace

Key key_for(Key key, const Settings& settings) {
  if (settings.allow_reorder) key.fact("order", "any");
  return key;
}

Choice choose(Store& store, const Key& key, const std::vector<OpConfig>& candidates, const Settings& settings,
              const Work& work, const char* doing) {
  const Key asked = key_for(key, settings);
  const std::optional<Record> known = store.find(asked);
  Search search(candidates, settings, known ? known->failures : Failures{});
  if (known && known->answers(settings.policy, search.size()) && search.contains(*known->config))
    return {.config = *known->config, .ns = known->ns, .from_store = true};
  Choice choice;
  try {
    for (Step step; (step = compile_all(search, work, choice.compilations)).kind != Step::Kind::kDone;)
      if (step.kind == Step::Kind::kTime) {
        const auto tell = [&] {
          tell_progress({doing, "samples", size_t(search.samples()), size_t(search.samples_expected())});
        };
        if (search.samples() == 0) tell();
        time(search, work, step.sample);
        tell();
      }
  } catch (...) {  // the store remembers the failure
    store.put(asked, record_of(search, settings));
    throw;
  }
  Record record = record_of(search, settings);
  choice.samples = search.samples();
  choice.tried = search.tried();
  if (search.has_winner()) record.config = search.winner(), record.ns = search.winner_ns();
  store.put(asked, record);
  choice.config = search.winner();
  choice.ns = record.ns;
  return choice;
}

}  // namespace heddle::tune
