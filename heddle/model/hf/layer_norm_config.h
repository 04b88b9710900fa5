// The configurations of families whose norms are around the mean: Cohere, Nemotron, StarCoder 2, StableLM, GPT-NeoX, Phi and
// Falcon. rms_norm_eps is the epsilon of those norms.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

struct CohereConfig : DecoderConfig {
  double logit_scale = 1;
  bool use_qk_norm = false;  // Cohere, not Cohere 2
};

struct StablelmConfig : DecoderConfig {
  bool qk_layernorm = false;
  bool use_parallel_residual = false;
};

struct GptNeoxConfig : DecoderConfig {
  bool use_parallel_residual = true;
};

struct PhiConfig : DecoderConfig {
  bool qk_layernorm = false;
};

struct FalconConfig : DecoderConfig {
  bool new_decoder_architecture = false;
  bool parallel_attn = true;
  bool bias = false;
  bool alibi = false;  // in place of a rope
  int norms = 1;       // before the two parts of a layer that run in parallel
};

CohereConfig read_cohere_config(const Config& config);
CohereConfig read_cohere2_config(const Config& config);
DecoderConfig read_starcoder2_config(const Config& config);
DecoderConfig read_nemotron_config(const Config& config);
StablelmConfig read_stablelm_config(const Config& config);
GptNeoxConfig read_gpt_neox_config(const Config& config);
PhiConfig read_phi_config(const Config& config);
FalconConfig read_falcon_config(const Config& config);

}  // namespace heddle
