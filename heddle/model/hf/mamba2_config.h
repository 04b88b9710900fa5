// The part of a configuration that describes layers of Mamba-2.
#pragma once

#include <array>

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

// The place of the norm of what a state space gives.
enum class Mamba2Norm : unsigned char { kAfterGate, kBeforeGate, kNone };

struct Mamba2Config {
  int heads = 0, head_dim = 0;
  int groups = 0, state_dim = 0;  // heads of a group share what a state is written and read by
  int conv_width = 0;
  bool conv_bias = false;
  bool in_bias = false, out_bias = false;  // projections have biases
  // Limits of steps, 0: none. transformers keeps them in prompts alone; here they hold at each position, as any cut of a text
  // must give the same.
  double least_step = 0, most_step = 0;
  Mamba2Norm norm = Mamba2Norm::kAfterGate;
  std::array<double, 5> multipliers = {1, 1, 1, 1, 1};  // for gates, x, B, C and steps

  int inner() const { return heads * head_dim; }
  int conv_columns() const { return inner() + 2 * groups * state_dim; }
};

// Reads the keys mamba_*, whose heads have `inner` elements together, or mamba_expand * hidden_size if that is 0.
Mamba2Config read_mamba2(const Config& config, int hidden_size, int inner = 0);

// Which layers attend; the others are of Mamba-2. `types` is the key of a list that has a name for each layer; none: no layer attends.
std::vector<bool> read_attending(const Config& config, const char* types, int layers);

}  // namespace heddle
