#include "heddle/text/generation_config.h"

#include "heddle/base/file.h"
#include "heddle/base/json_view.h"
#include "heddle/text/token_lists.h"

namespace heddle {
namespace {

constexpr int64_t kMaxCount = INT32_MAX;

// Settings that change the text, each with the value that has no effect.
struct Neutral {
  const char* key;
  double value;
};
constexpr Neutral kNeutral[] = {{"num_beams", 1},      {"num_beam_groups", 1}, {"num_return_sequences", 1},
                                {"epsilon_cutoff", 0}, {"eta_cutoff", 0},      {"diversity_penalty", 0},
                                {"min_length", 0},     {"min_new_tokens", 0},  {"guidance_scale", 1},
                                {"penalty_alpha", 0}};
// Settings that change the text whenever they are set.
constexpr const char* kForeign[] = {"top_h",
                                    "force_words_ids",
                                    "constraints",
                                    "suppress_tokens",
                                    "begin_suppress_tokens",
                                    "dola_layers",
                                    "forced_bos_token_id",
                                    "forced_eos_token_id",
                                    "watermarking_config",
                                    "exponential_decay_length_penalty",
                                    "token_healing"};

bool is_unset(const JsonView& value) {
  return value.is_bool() ? !value.as_bool() : value.is_array() && value.size() == 0;
}

void refuse_unsupported(const JsonView& root) {
  for (const Neutral& neutral : kNeutral) {
    const auto value = root.find(neutral.key);
    if (!value || value->as_number() == neutral.value) continue;
    value->fail(ErrorCode::kUnsupported,
                fmt::format("this is not supported; {} or no such line is", neutral.value));
  }
  for (const char* key : kForeign) {
    const auto value = root.find(key);
    if (value && !is_unset(*value)) value->fail(ErrorCode::kUnsupported, "this is not supported; null is");
  }
}

// Visits one value or the values of a list.
void for_each_of(const JsonView& root, std::string_view key,
                 const std::function<void(const JsonView&)>& visit) {
  const auto value = root.find(key);
  if (!value) return;
  if (value->is_array()) {
    value->for_each_item(visit);
  } else {
    visit(*value);
  }
}

std::optional<int32_t> read_count(const JsonView& root, std::string_view key) {
  const auto value = root.find(key);
  if (!value) return std::nullopt;
  return int32_t(value->as_int(0, kMaxCount));
}

void read_sampling(const JsonView& root, SamplingParams& sampling) {
  const auto number = [&](std::string_view key, float otherwise) {
    const auto value = root.find(key);
    return value ? float(value->as_number()) : otherwise;
  };
  constexpr int32_t kTopK = 50;  // transformers' default
  sampling.repetition_penalty = number("repetition_penalty", 1);
  sampling.no_repeat_ngram_size = read_count(root, "no_repeat_ngram_size").value_or(0);
  if (const auto words = root.find("bad_words_ids")) sampling.bad_words_ids = read_token_lists(*words);
  if (const auto bias = root.find("sequence_bias")) sampling.sequence_bias = read_sequence_bias(*bias);
  const auto do_sample = root.find("do_sample");
  if (do_sample && do_sample->as_bool()) {
    sampling.temperature = number("temperature", 1);
    sampling.top_k = read_count(root, "top_k").value_or(kTopK);
    sampling.top_p = number("top_p", 1);
    sampling.min_p = number("min_p", 0);
    sampling.typical_p = number("typical_p", 1);
  }
}

}  // namespace

GenerationConfig GenerationConfig::parse(std::string_view json, const std::string& name) {
  const JsonDocument document(json, name);
  const JsonView root = document.root();
  refuse_unsupported(root);
  GenerationConfig config;
  read_sampling(root, config.sampling);
  try {
    config.sampling.validate();
  } catch (const Error& error) {
    fail(ErrorCode::kIo, "[{}] {}", name, error.what());
  }
  for_each_of(root, "eos_token_id",
              [&](const JsonView& id) { config.eos_token_ids.push_back(int32_t(id.as_int(0, kMaxCount))); });
  for_each_of(root, "stop_strings",
              [&](const JsonView& text) { config.stop_strings.push_back(text.as_string()); });
  config.bos_token_id = read_count(root, "bos_token_id");
  config.pad_token_id = read_count(root, "pad_token_id");
  config.max_new_tokens = read_count(root, "max_new_tokens");
  config.max_length = read_count(root, "max_length");
  return config;
}

GenerationConfig GenerationConfig::load(const std::string& path) {
  return parse(read_file(path), path);
}

}  // namespace heddle
