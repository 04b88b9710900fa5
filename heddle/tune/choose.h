// Chooses a configuration: from the store if it is known, otherwise by a search, whose result the store
// keeps.
#pragma once

#include <functional>
#include <vector>

#include "heddle/tune/store.h"

namespace heddle::tune {

// The work of a search. An Error from one of these functions is a failure of that configuration. An Error
// with code kInternal, a run that was Cancelled, or any other exception, ends the search.
struct Work {
  // Several threads may call it at once, for different configurations.
  std::function<void(const OpConfig&)> compile;
  // Nanoseconds per call, for `calls` calls in a row. The calls use sets of operands from `buffer` on, in
  // rotation.
  std::function<double(const OpConfig&, int calls, int buffer)> time;
};

struct Choice {
  OpConfig config;
  double ns = 0;  // median of a call; 0: not timed
  bool from_store = false;
  int compilations = 0, samples = 0;  // spent on this choice
  std::vector<Tried> tried;           // empty if the choice came from the store
};

// The key under which the store has what a search with these settings found: one that may add in any order has its own.
Key key_for(Key key, const Settings& settings);

// `candidates` are in the op's order, the likely best first. Tells how far it is (base/progress.h) as `doing`. Throws Error(kCompile) when none of them works.
Choice choose(Store& store, const Key& key, const std::vector<OpConfig>& candidates, const Settings& settings,
              const Work& work, const char* doing = "timing");

}  // namespace heddle::tune
