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

// A text through one of the mixtures of experts of tests/goldens/mixtures.
struct MixtureGolden {
  std::vector<i32> tokens;  // [n]
  std::vector<u8>
      routes;            // [layers, n, taken]: experts in fp32, in rising order, by layers that have experts
  std::vector<u8> firm;  // [layers, n]: 1 where errors as large as those of bf16 change no choice so far
  i64 taken = 0;         // experts of a token
  std::vector<i32> positions;  // [m]: some whose choices are firm in all layers
  std::vector<float> logits;   // [m, vocab], fp32
  // The largest error of transformers' bf16 at positions whose choices are firm, of both texts: the largest of a few positions
  // alone is chance.
  double bf16_error = 0;
};

std::vector<std::string> mixture_names();
// `length`: 17 or 300 tokens.
MixtureGolden load_mixture(const std::string& name, int length);
std::unique_ptr<Model> open_mixture(const std::string& name);
std::unique_ptr<Engine> mixture_engine(const std::string& name, EngineOptions options);

std::vector<std::string> golden_names();
Golden load_golden(const std::string& name);
std::unique_ptr<Engine> golden_engine(const std::string& name, EngineOptions options);
Planner golden_planner(const std::string& name, EngineOptions options);

// Computes the logits of `tokens` as one sequence, in steps of at most `chunk` rows. The engine must have
// all_logits.
std::vector<float> logits_of(Engine& engine, std::span<const i32> tokens, size_t chunk);
double largest_difference(std::span<const float> a, std::span<const float> b);

}  // namespace heddle
