#include "heddle/text/generation_keys.h"

#include <algorithm>

namespace heddle {
namespace {

// The settings of transformers' GenerationConfig that decide on a text, and the tokens that it names.
constexpr std::string_view kKeys[] = {"assistant_early_exit",
                                      "bad_words_ids",
                                      "begin_suppress_tokens",
                                      "bos_token_id",
                                      "constraints",
                                      "diversity_penalty",
                                      "do_sample",
                                      "dola_layers",
                                      "encoder_no_repeat_ngram_size",
                                      "encoder_repetition_penalty",
                                      "eos_token_id",
                                      "epsilon_cutoff",
                                      "eta_cutoff",
                                      "exponential_decay_length_penalty",
                                      "force_words_ids",
                                      "forced_bos_token_id",
                                      "forced_eos_token_id",
                                      "guidance_scale",
                                      "max_length",
                                      "max_new_tokens",
                                      "max_time",
                                      "min_length",
                                      "min_new_tokens",
                                      "min_p",
                                      "no_repeat_ngram_size",
                                      "num_beam_groups",
                                      "num_beams",
                                      "num_return_sequences",
                                      "pad_token_id",
                                      "penalty_alpha",
                                      "prompt_lookup_num_tokens",
                                      "repetition_penalty",
                                      "sequence_bias",
                                      "stop_strings",
                                      "suppress_tokens",
                                      "temperature",
                                      "token_healing",
                                      "top_h",
                                      "top_k",
                                      "top_p",
                                      "typical_p",
                                      "use_mtp",
                                      "watermarking_config"};

}  // namespace

GenerationKeys::GenerationKeys(const JsonView& root, bool is_model_config, const GenerationNames& ignored)
    : root_(root), ignored_(ignored) {
  for (const std::string& name : ignored) {
    require(std::ranges::find(kKeys, name) != std::end(kKeys),
            "[--ignore-generation] '{}' is no setting of generation; num_beams or another key of "
            "generation_config.json is expected",
            name);
  }
  if (!is_model_config) return;
  // As GenerationConfig.from_model_config of transformers: the first of these that is there.
  for (const char* name : {"decoder", "generator", "text_config"}) {
    const auto found = root.find(name);
    if (!found || !found->is_object() || found->size() == 0) continue;
    text_model_ = found;
    text_model_name_ = name;
    break;
  }
}

std::optional<JsonView> GenerationKeys::find_any(std::string_view key, bool* in_text_model) const {
  auto found = root_.find(key);
  if (found || !text_model_) return found;
  if (in_text_model) *in_text_model = true;
  return text_model_->find(key);
}

std::optional<JsonView> GenerationKeys::find(std::string_view key) const {
  return ignored_.contains(key) ? std::nullopt : find_any(key);
}

std::vector<GenerationSource> GenerationKeys::sources(const std::string& file) const {
  std::vector<GenerationSource> all;
  for (std::string_view key : kKeys) {
    bool in_text_model = false;
    const auto value = find_any(key, &in_text_model);
    if (!value) continue;
    std::string where = in_text_model ? fmt::format("{}: {}", file, text_model_name_) : file;
    if (ignored_.contains(key)) where += ", ignored";
    all.push_back({std::string(key), value->text(), where});
  }
  return all;
}

}  // namespace heddle
