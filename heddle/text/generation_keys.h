// Where settings of generation are looked for: in one file, or in a model's configuration and its text model's.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json_view.h"

namespace heddle {

// Names of settings.
using GenerationNames = std::set<std::string, std::less<>>;

// A setting as a file has it, for people.
struct GenerationSource {
  std::string name, value, where;
};

class GenerationKeys {
 public:
  // `root` outlives the keys. `is_model_config`: it is a config.json.
  GenerationKeys(const JsonView& root, bool is_model_config, const GenerationNames& ignored);

  // Empty if there is no such key, or if it is null or ignored.
  std::optional<JsonView> find(std::string_view key) const;
  // All keys of generation that the file has.
  std::vector<GenerationSource> sources(const std::string& file) const;

 private:
  std::optional<JsonView> find_any(std::string_view key, bool* in_text_model = nullptr) const;

  const JsonView& root_;
  std::optional<JsonView> text_model_;
  std::string text_model_name_;
  const GenerationNames& ignored_;
};

}  // namespace heddle
