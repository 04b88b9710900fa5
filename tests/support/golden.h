// The tiny checkpoints of tests/goldens/models, and the results of transformers on them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/engine/engine.h"

namespace heddle {

struct Golden {
  std::string folder;
  std::vector<i32> tokens;    // [n]
  std::vector<float> logits;  // [n, vocab], fp32
  std::vector<i32> prompt, greedy;
  std::vector<float> margins;  // first minus second logit of each greedy token
  double bf16_error = 0;       // largest error of transformers' bf16 against these logits
};

std::vector<std::string> golden_names();
Golden load_golden(const std::string& name);
std::unique_ptr<Engine> golden_engine(const std::string& name, EngineOptions options);
Planner golden_planner(const std::string& name, EngineOptions options);

// Computes the logits of `tokens` as one sequence, in steps of at most `chunk` rows. The engine must have
// all_logits.
std::vector<float> logits_of(Engine& engine, std::span<const i32> tokens, size_t chunk);
double largest_difference(std::span<const float> a, std::span<const float> b);

}  // namespace heddle
