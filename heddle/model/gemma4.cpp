// Gemma 4, text (Google DeepMind, 2026): see build/gemma4.h.
#include "heddle/model/build/gemma4.h"

namespace heddle::gemma4 {

const Family& family() {
  static const Family family = {
      .model_type = "gemma4_text",
      .doc = "Gemma 4, text",
      .supports =
          "the text model of a gemma4 with images and sound, wider heads and keys "
          "as values in layers that see all positions, "
          "a proportional rope, embeddings of each layer, keys and values of "
          "earlier layers, experts next to the MLP (enable_moe_block), final_logit_softcapping",
      .refuses = "use_bidirectional_attention of texts",
      .define = [](const Config& config,
                   const Inventory& tensors) { return define_gemma4(read_gemma4_config(config), tensors); },
      .also = {{"gemma4_text", "gemma4"}}};
  return family;
}

}  // namespace heddle::gemma4
