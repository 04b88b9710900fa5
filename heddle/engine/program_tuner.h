// Chooses what decides a model's programs but no result: their scheduler, and the configurations of their ops. The
// fastest are found by running the model, and are kept for later engines on the same device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/engine/options.h"
#include "heddle/tune/search.h"

namespace heddle {

// The work that is timed: an answer of `answer` tokens to a prompt of `prompt` tokens, by one sequence.
struct TuneWork {
  i32 prompt = 512;
  i32 answer = 128;
};

// One of the choices that were made, and what was tried for it.
struct TunedChoice {
  std::string what;  // "scheduler", the name of an op, "these-together"
  std::vector<tune::Tried> tried;
};

struct TunedPrograms {
  std::string scheduler, config;  // as in EngineOptions; the defaults, if nothing is faster
  double ns = 0;                  // median time of an answer
  std::vector<TunedChoice> choices = {};

  std::string summary() const;  // "scheduler zigzag, config linear:columns=64,stages=3"
};

// Tries each scheduler, then the configurations of each op that has some in the programs of such an answer, each with
// what was best before; then all that won against the defaults. Keeps the result in the store of tune/op_tuner.h.
// `settings.allow_reorder` also allows those that change last bits. The options are of an engine that make_planner()
// accepts, without a scheduler, configurations or an artefact. Throws Error where the engine does, and
// Error(kInvalidArgument) where the work does not fit the context.
TunedPrograms tune_programs(const std::shared_ptr<const Model>& model, const EngineOptions& options,
                            const TuneWork& work, tune::Settings settings);

// Puts what was found for this model and these options into options that name neither a scheduler nor configurations.
// Returns it as TunedPrograms::summary() has it; "" where nothing was found. Reads no weights but samples.
std::string take_tuned(const Model& model, EngineOptions& options);

}  // namespace heddle
