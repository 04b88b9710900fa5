#include "heddle/text/generation_config.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "heddle/base/file.h"
#include "heddle/base/json_view.h"
#include "heddle/text/gguf_vocabulary.h"
#include "heddle/text/token_lists.h"

namespace heddle {
namespace {

constexpr int64_t kMaxCount = INT32_MAX;

// Settings that change the text, each with the value that has no effect. Beams, several answers, contrastive
// search and guidance run a model otherwise than token by token.
struct Neutral {
  const char* key;
  double value;
};
constexpr Neutral kNeutral[] = {{"num_beams", 1},         {"num_beam_groups", 1}, {"num_return_sequences", 1},
                                {"diversity_penalty", 0}, {"guidance_scale", 1},  {"penalty_alpha", 0}};
// Settings that change the text, or the way to it, whenever they are set.
constexpr const char* kForeign[] = {
    "force_words_ids", "constraints", "dola_layers",          "watermarking_config",
    "token_healing",   "max_time",    "assistant_early_exit", "prompt_lookup_num_tokens",
    "use_mtp"};

bool is_unset(const JsonView& value) {
  return value.is_bool() ? !value.as_bool() : value.is_array() && value.size() == 0;
}

void refuse_unsupported(const GenerationKeys& keys) {
  constexpr const char* kUnsupported =
      "this is not supported; set it to {}, delete the line, or pass --ignore-generation {}";
  for (const Neutral& neutral : kNeutral) {
    const auto value = keys.find(neutral.key);
    if (!value || value->as_number() == neutral.value) continue;
    value->fail(ErrorCode::kUnsupported, fmt::format(fmt::runtime(kUnsupported), neutral.value, neutral.key));
  }
  for (const char* key : kForeign) {
    const auto value = keys.find(key);
    if (!value || is_unset(*value)) continue;
    value->fail(ErrorCode::kUnsupported, fmt::format(fmt::runtime(kUnsupported), "null", key));
  }
}

// Visits one value or the values of a list.
void for_each_of(const GenerationKeys& keys, std::string_view key,
                 const std::function<void(const JsonView&)>& visit) {
  const auto value = keys.find(key);
  if (!value) return;
  if (value->is_array()) {
    value->for_each_item(visit);
  } else {
    visit(*value);
  }
}

// Transformers leaves a negative one without effect.
std::optional<int32_t> read_harmless(const GenerationKeys& keys, std::string_view key) {
  const auto value = keys.find(key);
  if (!value) return std::nullopt;
  const int64_t number = value->as_int(INT32_MIN, kMaxCount);
  return number < 0 ? std::nullopt : std::optional(int32_t(number));
}

std::optional<int32_t> read_count(const GenerationKeys& keys, std::string_view key) {
  const auto value = keys.find(key);
  if (!value) return std::nullopt;
  return int32_t(value->as_int(0, kMaxCount));
}

std::vector<int32_t> read_ids(const GenerationKeys& keys, std::string_view key) {
  std::vector<int32_t> ids;
  for_each_of(keys, key, [&](const JsonView& id) { ids.push_back(int32_t(id.as_int(0, kMaxCount))); });
  return ids;
}

// The ids that a model may have: no token is below 0, so such an id ends, begins and forbids nothing.
std::vector<int32_t> read_possible_ids(const GenerationKeys& keys, std::string_view key) {
  std::vector<int32_t> ids;
  for_each_of(keys, key, [&](const JsonView& id) {
    if (const int64_t number = id.as_int(INT32_MIN, kMaxCount); number >= 0) ids.push_back(int32_t(number));
  });
  return ids;
}

std::optional<int32_t> first_of(const std::vector<int32_t>& ids) {
  return ids.empty() ? std::nullopt : std::optional(ids[0]);
}

// [start, factor]
void read_decay(const JsonView& value, SamplingParams& sampling) {
  if (!value.is_array() || value.size() != 2)
    value.fail(ErrorCode::kIo, "the number of tokens and the factor are expected, as in [15, 1.1]");
  bool is_start = true;
  value.for_each_item([&](const JsonView& item) {
    if (is_start) sampling.exponential_decay_start = int32_t(item.as_int(0, kMaxCount));
    if (!is_start) sampling.exponential_decay_factor = float(item.as_number());
    is_start = false;
  });
}

void read_sampling(const GenerationKeys& keys, SamplingParams& sampling) {
  const auto number = [&](std::string_view key, float otherwise) {
    const auto value = keys.find(key);
    return value ? float(value->as_number()) : otherwise;
  };
  constexpr int32_t kTopK = 50;  // transformers' default
  sampling.repetition_penalty = number("repetition_penalty", 1);
  sampling.no_repeat_ngram_size = read_harmless(keys, "no_repeat_ngram_size").value_or(0);
  if (const auto words = keys.find("bad_words_ids")) sampling.bad_words_ids = read_token_lists(*words);
  if (const auto bias = keys.find("sequence_bias")) sampling.sequence_bias = read_sequence_bias(*bias);
  sampling.encoder_repetition_penalty = number("encoder_repetition_penalty", 1);
  sampling.encoder_no_repeat_ngram_size = read_harmless(keys, "encoder_no_repeat_ngram_size").value_or(0);
  sampling.min_length = read_harmless(keys, "min_length").value_or(0);
  sampling.min_new_tokens = read_harmless(keys, "min_new_tokens").value_or(0);
  sampling.forced_bos_token_id = read_count(keys, "forced_bos_token_id").value_or(-1);
  sampling.forced_eos_token_id = read_ids(keys, "forced_eos_token_id");
  sampling.suppress_tokens = read_possible_ids(keys, "suppress_tokens");
  sampling.begin_suppress_tokens = read_possible_ids(keys, "begin_suppress_tokens");
  if (const auto decay = keys.find("exponential_decay_length_penalty")) read_decay(*decay, sampling);
  const auto do_sample = keys.find("do_sample");
  if (do_sample && do_sample->as_bool()) {
    // Transformers uses these only within their ranges.
    const auto below_1 = [&](std::string_view key) { return std::min(number(key, 1), 1.0f); };
    const auto between_0_and_1 = [&](std::string_view key) {
      const float value = number(key, 0);
      return value > 0 && value < 1 ? value : 0;
    };
    sampling.temperature = number("temperature", 1);
    sampling.top_k = keys.find("top_k") ? read_harmless(keys, "top_k").value_or(0) : kTopK;
    sampling.top_p = below_1("top_p");
    sampling.min_p = number("min_p", 0);
    sampling.typical_p = below_1("typical_p");
    sampling.top_h = number("top_h", 0);
    sampling.epsilon_cutoff = between_0_and_1("epsilon_cutoff");
    sampling.eta_cutoff = between_0_and_1("eta_cutoff");
  }
}

GenerationConfig read(std::string_view json, const std::string& name, bool is_model_config,
                      const GenerationNames& ignored) {
  const JsonDocument document(json, name);
  const JsonView root = document.root();
  const GenerationKeys keys(root, is_model_config, ignored);
  refuse_unsupported(keys);
  GenerationConfig config;
  read_sampling(keys, config.sampling);
  try {
    config.sampling.validate();
  } catch (const Error& error) {
    fail(ErrorCode::kIo, "[{}] {}", name, error.what());
  }
  config.eos_token_ids = read_possible_ids(keys, "eos_token_id");
  for_each_of(keys, "stop_strings",
              [&](const JsonView& text) { config.stop_strings.push_back(text.as_string()); });
  config.bos_token_id = first_of(read_possible_ids(keys, "bos_token_id"));
  config.pad_token_id = first_of(read_possible_ids(keys, "pad_token_id"));
  config.max_new_tokens = read_harmless(keys, "max_new_tokens");
  config.max_length = read_harmless(keys, "max_length");
  config.sources = keys.sources(std::filesystem::path(name).filename());
  return config;
}

}  // namespace

GenerationConfig GenerationConfig::parse(std::string_view json, const std::string& name,
                                         const GenerationNames& ignored) {
  return read(json, name, false, ignored);
}

GenerationConfig GenerationConfig::parse_model_config(std::string_view json, const std::string& name,
                                                      const GenerationNames& ignored) {
  return read(json, name, true, ignored);
}

GenerationConfig GenerationConfig::load(const std::string& folder, const GenerationNames& ignored) {
  if (is_gguf(folder)) return parse(gguf_generation(Gguf(folder)).dump(), folder, ignored);
  const std::filesystem::path own = std::filesystem::path(folder) / "generation_config.json",
                              model = std::filesystem::path(folder) / "config.json";
  if (path_exists(own)) return parse(read_file(own), own, ignored);
  return parse_model_config(path_exists(model) ? read_file(model) : "{}", model, ignored);
}

}  // namespace heddle
