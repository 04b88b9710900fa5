#include "heddle/model/hf/family_config.h"

#include <algorithm>

#include "heddle/model/hf/quantisation.h"

namespace heddle {

HiddenAct read_hidden_act(const Config& config, const std::string& key, const std::string& fallback) {
  const std::string name = config.optional_string(key, fallback);
  if (name == "silu" || name == "swish") return HiddenAct::kSilu;
  if (name == "gelu") return HiddenAct::kGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return HiddenAct::kGeluTanh;
  if (name == "relu2") return HiddenAct::kReluSquared;
  config.refuse(key, "it may be silu, swish, gelu, gelu_new, gelu_pytorch_tanh, gelu_fast or relu2");
}

void refuse_foreign(const Config& config, const std::string& family,
                    std::initializer_list<std::string_view> read) {
  const auto architectures = config.architectures();
  const auto is_one_of = [&](std::initializer_list<const char*> classes) {
    return std::ranges::any_of(architectures, [&](const std::string& name) {
      return std::ranges::any_of(classes, [&](const char* end) { return name == family + end; });
    });
  };
  if (!architectures.empty() && !is_one_of({"ForCausalLM", "LMHeadModel"})) {
    if (!is_one_of({"Model", "TextModel", "ForSequenceClassification", "ForTokenClassification",
                    "ForQuestionAnswering", "ForConditionalGeneration"}))
      config.refuse("architectures", "this model_type is read as " + family + "ForCausalLM");
    config.note("architectures", "its trunk is read as that of " + family + "ForCausalLM");
  }
  const auto is_read = [&](const char* key) {
    return std::ranges::find(read, std::string_view(key)) != read.end();
  };
  if (!is_read("quantization_config")) read_code_format(config);
  for (const char* key : {"is_encoder_decoder", "add_cross_attention", "pruned_heads", "sliding_window",
                          "attn_logit_softcapping", "final_logit_softcapping", "num_local_experts"})
    if (!is_read(key)) config.refuse_unless(key);
}

void note_unless(const Config& config, const std::string& key,
                 std::initializer_list<std::string_view> accepted, std::string_view text) {
  if (!config.is_one_of(key, accepted)) config.note(key, text);
}

}  // namespace heddle
