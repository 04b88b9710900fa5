// A family is one file of heddle/model, found by its name: `const Family& x::family()` in x.cpp.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/engine/model.h"
#include "heddle/model/build/builder.h"
#include "heddle/model/hf/checkpoint.h"
#include "heddle/model/hf/config.h"
#include "heddle/model/hf/quantisation.h"
#include "heddle/model/hf/stored_names.h"

namespace heddle {

// A family makes this from a config.json: sizes, and a function that writes the graph.
struct Definition {
  ModelInfo info;
  std::function<void(Builder&)> build;
};

// A model_type whose configurations and weights a family reads too.
struct FamilyName {
  const char* model_type = "";
  const char* inside =
      "";  // the type around it, of which it is the text model, under `text_config`; "": it stands alone
};

struct Family {
  const char* model_type = "";  // as in config.json
  const char* doc = "";
  // For `heddle models`: the configuration's options that are supported, and those that end in an error.
  const char* supports = "";
  const char* refuses = "";
  Definition (*define)(const Config& config, const Inventory& tensors) = nullptr;
  TrunkNames trunk = {};
  std::vector<FamilyName> also = {};

  // True if the family reads a configuration of this type, inside one of type `around` if that is not "".
  bool reads(std::string_view type, std::string_view around = "") const;
};

std::span<const Family* const> all_families();

// The configuration of the text model: `config`, or its text_config.
struct TextConfig {
  Config config;
  bool tied_outside = false;  // see Inventory
  CodeFormat codes = {};
};
TextConfig text_config(const Config& config);

// Defines the model that a config.json describes. Throws when no family has its model_type.
Definition define_model(const Config& config, const Inventory& tensors);

// A model of tensors by name, which others may replace.
class TensorModel : public Model {
 public:
  // Finds new values for what the model reads: `tensors` are all or some of its tensors, by their names there. A tensor of
  // another name must be the memory of one of them, as a tied head is. The result must not outlive the model. Throws
  // Error(kInvalidArgument) for a name that the model lacks, and for another shape or type.
  virtual std::unique_ptr<WeightValues> replacing(std::shared_ptr<TensorSource> tensors) const = 0;
};

// Opens a model folder. Throws Error that names file, key and value when something is missing or unsupported. `adapter`: a
// folder of PEFT that is merged into the weights as they are read (model/hf/adapter.h); "": none.
std::unique_ptr<TensorModel> open_model(const std::string& folder, const std::string& adapter = "");
// Does so with tensors that are no files. `config`: the text of a config.json. The tensors are read until an engine has
// the model's weights, and not after.
std::unique_ptr<TensorModel> open_model(const std::string& config, std::shared_ptr<TensorSource> tensors,
                                        const std::string& adapter = "");

}  // namespace heddle
