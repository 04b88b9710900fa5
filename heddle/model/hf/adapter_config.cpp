#include "heddle/model/hf/adapter_config.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <regex>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"

namespace heddle {
namespace {

constexpr int kMostRank = 1 << 16;
constexpr double kMostAlpha = 1e6;

// Kinds of adapters that are more than a product for each linear layer. Empty or false, they change nothing.
constexpr const char* kMore[] = {"use_dora",
                                 "modules_to_save",
                                 "lora_bias",
                                 "use_qalora",
                                 "trainable_token_indices",
                                 "target_parameters",
                                 "use_bdlora",
                                 "alora_invocation_tokens",
                                 "layer_replication",
                                 "kasa_config",
                                 "arrow_config",
                                 "monteclora_config",
                                 "velora_config"};
// Keys of training, keys that are read elsewhere, and those that its tensors say better.
constexpr const char* kNeedless[] = {"auto_mapping",      "base_model_name_or_path",
                                     "corda_config",      "ensure_weight_tying",
                                     "eva_config",        "exclude_modules",
                                     "fan_in_fan_out",    "inference_mode",
                                     "layers_pattern",    "layers_to_transform",
                                     "loftq_config",      "lora_dropout",
                                     "lora_ga_config",    "megatron_config",
                                     "megatron_core",     "peft_version",
                                     "qalora_group_size", "revision",
                                     "runtime_config",    "target_modules",
                                     "task_type",         "rank_pattern",
                                     "alpha_pattern",     "r",
                                     "lora_alpha",        "use_rslora"};

// Whole matches of Python's regular expressions, as far as ECMAScript's have them. libstdc++'s matcher of this flag takes time
// and memory in proportion to the text.
bool fits(const std::string& pattern, const std::string& text, const std::string& where, const char* key) {
  constexpr size_t kLongest = 4096;  // the compiler of patterns calls itself at each parenthesis
  try {
    if (pattern.size() > kLongest) throw std::regex_error(std::regex_constants::error_complexity);
    return std::regex_match(text,
                            std::regex(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial));
  } catch (const std::regex_error&) {
    fail(ErrorCode::kUnsupported,
         "[{}] {} has the pattern {}, which is not understood; write it as a list of names", where, key,
         brief(pattern));
  }
}

bool is_all_linear(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return text == "all-linear";
}

bool names(const std::string& target, const std::string& module) {
  return module == target || module.ends_with("." + target);
}

}  // namespace

std::string adapter_config_text(const std::string& folder) {
  const std::string path = std::filesystem::path(folder) / "adapter_config.json";
  if (!path_exists(path))
    fail(ErrorCode::kIo, "[{}] {}; an adapter is the folder that PEFT's save_pretrained writes", folder,
         is_folder(folder) ? "holds no adapter_config.json" : "is not a folder");
  return read_file(path);
}

AdapterConfig::AdapterConfig(const std::string& folder, const std::string& text)
    : where_(std::filesystem::path(folder) / "adapter_config.json"),
      config_(Config::parse(text, where_)),
      json_(parse_json(text, where_, {.depth = 32})) {
  if (config_.required_string("peft_type") != "LORA")
    config_.refuse("peft_type", "only adapters of the type LORA are read");
  for (const char* key : kMore) config_.refuse_unless(key);
  config_.refuse_unless("bias", {"\"none\""});
  // PEFT takes a part of the base weights away where an adapter begins with that part.
  config_.refuse_unless("init_lora_weights", {"true", "false", "\"gaussian\"", "\"orthogonal\"", "\"eva\""});
  rank_ = config_.optional_int("r", 8, 1, kMostRank);
  alpha_ = config_.optional_number("lora_alpha", 8, -kMostAlpha, kMostAlpha);
  by_root_ = config_.optional_bool("use_rslora", false);
  for (const char* key : {"rank_pattern", "alpha_pattern"})
    (void)config_.section(key);  // objects, or an error
  for (const char* key : kNeedless) (void)config_.has(key);
  for (const std::string& key : config_.unread())
    if (!config_.is_one_of(key, {})) config_.note(key, "it is not known, and not used");
}

const Json* AdapterConfig::pattern_value(const char* key, const std::string& module) const {
  const Json* patterns = json_.find(key);
  if (!patterns || patterns->is_null()) return nullptr;
  for (const auto& [pattern, value] : patterns->members())
    if (names(pattern, module) || fits("(.*\\.)?(" + pattern + ")", module, where_, key)) return &value;
  return nullptr;
}

AdapterConfig::RankAndScale AdapterConfig::rank_and_scale(const std::string& module) const {
  int64_t rank = rank_;
  double alpha = alpha_;
  if (const Json* given = pattern_value("rank_pattern", module)) {
    rank = given->to_int().value_or(0);
    if (rank < 1 || rank > kMostRank)
      fail(ErrorCode::kIo, "[{}] rank_pattern has {} for {}; must be 1 to {}", where_, brief(*given), module,
           kMostRank);
  }
  if (const Json* given = pattern_value("alpha_pattern", module)) {
    if (!given->is_number() || !(std::abs(given->as_number()) <= kMostAlpha))
      fail(ErrorCode::kIo, "[{}] alpha_pattern has {} for {}; must be a number up to {}", where_,
           brief(*given), module, kMostAlpha);
    alpha = given->as_number();
  }
  return {rank, float(alpha / (by_root_ ? std::sqrt(double(rank)) : double(rank)))};
}

void AdapterConfig::require_chosen(const std::vector<std::string>& modules, const std::string& file) const {
  const Json* given = json_.find("target_modules");
  if (!given || given->is_null())
    config_.refuse("target_modules", "the file must name the modules that the adapter changes");
  std::vector<std::string> targets;
  if (!given->is_string()) targets = config_.optional_strings("target_modules");
  const auto is_chosen = [&](const std::string& module) {
    if (given->is_string()) return fits(given->as_string(), module, where_, "target_modules");
    return std::ranges::any_of(targets, [&](const std::string& target) { return names(target, module); });
  };
  if (given->is_string() && is_all_linear(given->as_string())) return;
  for (const std::string& module : modules)
    if (!is_chosen(module))
      fail(ErrorCode::kIo, "[{}] has tensors of {}, which target_modules does not choose: {}", file,
           brief(module), brief(*given));
  for (const std::string& target : targets)
    if (std::ranges::none_of(modules, [&](const std::string& module) { return names(target, module); }))
      fail(ErrorCode::kIo,
           "[{}] has no tensors of {}, which target_modules names; download the adapter again", file,
           brief(target));
}

}  // namespace heddle
