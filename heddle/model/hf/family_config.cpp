#include "heddle/model/hf/family_config.h"

#include <algorithm>

namespace heddle {

HiddenAct read_hidden_act(const Config& config, const std::string& key, const std::string& fallback) {
  const std::string name = config.optional_string(key, fallback);
  if (name == "silu" || name == "swish") return HiddenAct::kSilu;
  if (name == "gelu") return HiddenAct::kGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return HiddenAct::kGeluTanh;
  config.refuse(key, "it may be silu, swish, gelu, gelu_new, gelu_pytorch_tanh or gelu_fast");
}

void refuse_foreign(const Config& config, const std::string& architecture,
                    std::initializer_list<std::string_view> read) {
  const auto architectures = config.architectures();
  if (!architectures.empty() && std::ranges::find(architectures, architecture) == architectures.end())
    config.refuse("architectures", "this model_type is read as " + architecture);
  for (const char* key :
       {"quantization_config", "is_encoder_decoder", "add_cross_attention", "pruned_heads", "sliding_window",
        "attn_logit_softcapping", "final_logit_softcapping", "num_local_experts"})
    if (std::ranges::find(read, std::string_view(key)) == read.end()) config.refuse_unless(key);
}

}  // namespace heddle
