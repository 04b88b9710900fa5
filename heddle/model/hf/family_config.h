// Shared by the configurations of all families: limits, activation functions, and keys that no family
// supports.
#pragma once

#include <string>

#include "heddle/model/hf/config.h"

namespace heddle {

// Larger values are mistakes or attacks. Products of two of them fit in 64 bits; sizes of rows fit in 32.
constexpr int kMaxVocab = 1 << 24, kMaxWidth = 1 << 20, kMaxHeads = 1 << 12, kMaxHeadDim = 1 << 12,
              kMaxLayers = 1 << 12, kMaxExperts = 1 << 12, kMaxPositions = 1 << 30;

enum class HiddenAct : unsigned char {
  kSilu,
  kGelu,      // exact, by erf
  kGeluTanh,  // the approximation by tanh: gelu_new, gelu_pytorch_tanh, gelu_fast
  kReluSquared,
};

HiddenAct read_hidden_act(const Config& config, const std::string& key, const std::string& fallback);

// Refuses an `architectures` that names no class of `family`, such as "Llama": its causal language model, or one
// with the same trunk, which is noted. Also refuses keys that other families and tools add to a config.json and that
// change what a model computes, except those that the family reads itself.
void refuse_foreign(const Config& config, const std::string& family,
                    std::initializer_list<std::string_view> read = {});

// Notes that `key` has no effect unless it is absent, null, false, empty, or one of `accepted` written as JSON.
void note_unless(const Config& config, const std::string& key,
                 std::initializer_list<std::string_view> accepted, std::string_view text);

}  // namespace heddle
