// heddle models: lists the families that this build runs, with what each computes and refuses.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "apps/heddle/support/columns.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/json.h"
#include "heddle/model/build/family.h"

namespace heddle {
namespace {

// Facts that are alike in all families.
constexpr std::pair<const char*, const char*> kAll[] = {
    {"rope_type",
     "default, linear, yarn, llama3; longrope, whose factors the context chooses; dynamic up to "
     "max_position_embeddings: longer texts would change cached keys"},
    {"weights",
     "float32, float16, bfloat16 or (rounded) float64 in safetensors or pytorch_model.bin; fp8, int4 and "
     "gpt-oss's MXFP4 are read as bfloat16, other quantised ones refused"}};

// The outermost model_types that a family reads besides its own.
std::vector<std::string> other_types(const Family& family) {
  std::vector<std::string> types;
  for (const FamilyName& name : family.also) {
    const std::string type = *name.inside ? name.inside : name.model_type;
    if (std::ranges::find(types, type) == types.end()) types.push_back(type);
  }
  return types;
}

void show_json() {
  Json families = Json::array();
  for (const Family* family : all_families()) {
    Json also = Json::array();
    for (const std::string& type : other_types(*family)) also.push_back(type);
    families.push_back(Json::object({{"model_type", family->model_type},
                                     {"also", also},
                                     {"doc", family->doc},
                                     {"supports", family->supports},
                                     {"refuses", family->refuses}}));
  }
  Json made = Json::object({{"families", families}});
  for (const auto& [name, text] : kAll) made[name] = text;
  print_json(made);
}

void print_families() {
  constexpr size_t kNames = 17;
  for (const Family* family : all_families()) {
    print(listed(family->model_type, family->doc, kNames));
    if (!family->also.empty())
      print(listed("", fmt::format("also:     {}", fmt::join(other_types(*family), ", ")), kNames));
    print(listed("", fmt::format("supports: {}", family->supports), kNames));
    print(listed("", fmt::format("refuses:  {}", family->refuses), kNames));
  }
  print("\n");
  for (const auto& [name, text] : kAll) print(listed(name, text, kNames));
}

}  // namespace

void add_models(CLI::App& app) {
  Command command(app, "models", "List the families of models, what each supports and what it refuses");
  command.footer(
      "The model_type of config.json chooses the family. An unsupported option gives an error that names\n"
      "the key, its value and the allowed values.\n"
      "Example: heddle models");
  auto json = std::make_shared<bool>(false);
  command.argument("--json", json.get(), "print JSON");
  command.action([json] { *json ? show_json() : print_families(); });
}

}  // namespace heddle
