// Chooses a configuration: from the store where it is known, else by a search whose result is kept.
#pragma once

#include <functional>

#include "heddle/tune/store.h"

namespace heddle::tune {

// The work of a search. An Error from one of them is a failure of that configuration; one with code kInternal, and any
// other exception, ends the search.
struct Work {
  // May be called from several threads at once, for different configurations.
  std::function<void(const Config&)> compile;
  // Nanoseconds of a call: of `calls` of them one after another, with sets of operands from `buffer` on, in turns.
  std::function<double(const Config&, int calls, int buffer)> time;
};

struct Choice {
  Config config;
  double ns = 0;  // median of a call; 0: not timed
  bool from_store = false;
  int compilations = 0, samples = 0;  // that this choice took
  std::string text;                   // how each candidate stands; empty where it comes from the store
};

// `candidates` in the op's order, the likely best first. Throws Error(kCompile) where none of them works.
Choice choose(Store& store, const Key& key, const std::vector<Config>& candidates, const Settings& settings,
              const Work& work);

}  // namespace heddle::tune
