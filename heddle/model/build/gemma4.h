// Gemma 4, text (Google DeepMind, 2026): Gemma 3 whose values are normalised as keys are. Layers that see all positions have
// wider heads, of which a part turns, and may take keys as values. Small models give each layer embeddings of its own, and their
// last layers take the keys and values of earlier ones.
#pragma once

#include "heddle/model/build/family.h"
#include "heddle/model/hf/gemma4_config.h"

namespace heddle {

Definition define_gemma4(const Gemma4Config& c, const Inventory& tensors);

}  // namespace heddle
