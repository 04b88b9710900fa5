// Reads PEFT's adapter_config.json: which modules an adapter changes, by products of which rank and scale.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/model/hf/config.h"

namespace heddle {

// The text of `folder`/adapter_config.json. Throws Error where the folder is none of an adapter.
std::string adapter_config_text(const std::string& folder);

class AdapterConfig {
 public:
  // Throws Error that names the key for what is no LoRA of linear layers.
  AdapterConfig(const std::string& folder, const std::string& text);

  struct RankAndScale {
    int64_t rank = 1;
    float scale = 1;
  };
  RankAndScale rank_and_scale(const std::string& module) const;
  // Throws Error unless target_modules chooses each of the modules, and names none that is not there. `file`: of their tensors.
  void require_chosen(const std::vector<std::string>& modules, const std::string& file) const;
  const std::vector<std::string>& notes() const { return config_.notes(); }

 private:
  // The value of the first pattern of a key's object that fits the module; null: none does.
  const Json* pattern_value(const char* key, const std::string& module) const;

  std::string where_;
  Config config_;
  Json json_;  // objects in the file's order
  int64_t rank_ = 8;
  double alpha_ = 8;
  bool by_root_ = false;  // scales are alpha / sqrt(rank), not alpha / rank
};

}  // namespace heddle
