// The configuration of Llama 4's text model.
#pragma once

#include <vector>

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

struct Llama4Config : DecoderConfig {
  std::vector<bool> turns;   // layers whose heads turn by their position
  std::vector<bool> sparse;  // layers that have experts
  Experts experts;           // intermediate_size is that of one
  int dense_intermediate_size = 0;
  bool qk_norm = false;  // heads that turn are normalised
  int chunk =
      0;  // positions of a chunk of attention, which is what is served; 0: all layers see all positions
  // Queries of layers that turn no heads grow by 1 + attn_scale log(1 + floor((position + 1) / floor_scale)); 0: they do not.
  double attn_scale = 0;
  int floor_scale = 1;
};

Llama4Config read_llama4_config(const Config& config);

}  // namespace heddle
