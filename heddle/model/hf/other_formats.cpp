#include "heddle/model/hf/other_formats.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/gguf.h"

namespace heddle {
namespace {

std::optional<std::string> first_with(const std::vector<std::string>& names, auto matches) {
  const auto found = std::ranges::find_if(names, matches);
  return found == names.end() ? std::nullopt : std::optional(*found);
}

bool is_pickle(const std::string& name) {
  const bool ends = name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth");
  const bool begins = name.starts_with("consolidated") || name.starts_with("model");
  return ends && begins;
}

bool is_weights(const std::string& name) {
  return (name.starts_with("model") && name.find(".safetensors") != name.npos) ||
         (name.starts_with("pytorch_model") && name.find(".bin") != name.npos);
}

// The folders that hold models in a cache of the hub: models--x--y/snapshots/<revision>.
std::string snapshot_in(const std::string& root) {
  std::string found;
  if (!is_folder(root + "/snapshots")) return "";
  for (const std::string& revision : names_in(root + "/snapshots"))
    found = fmt::format("{}/snapshots/{}", root, revision);
  return found;
}

void refuse_file(const std::string& path) {
  if (path.ends_with(".safetensors"))
    fail(ErrorCode::kIo, "[{}] is a file of weights; give the folder that holds it and config.json", path);
}

void refuse_cache(const std::string& path, const std::vector<std::string>& names) {
  const std::string root = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  if (std::ranges::find(names, "snapshots") != names.end()) {
    const std::string inside = snapshot_in(root);
    fail(ErrorCode::kIo, "[{}] is a model in the cache of the hub; give the folder of a revision: {}", path,
         inside.empty() ? "snapshots holds none; download the model again" : inside);
  }
  const auto model = first_with(names, [](const std::string& name) { return name.starts_with("models--"); });
  if (!model) return;
  const std::string inside = snapshot_in(root + "/" + *model);
  fail(ErrorCode::kIo,
       "[{}] is the cache of the hub with its models; give the folder of one revision, such as {}", path,
       inside.empty() ? root + "/" + *model + "/snapshots/..." : inside);
}

}  // namespace

void refuse_other_formats(const std::string& path) {
  if (!is_folder(path)) return refuse_file(path);
  const std::vector<std::string> names = names_in(path);
  const auto has = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
  const bool has_weights = first_with(names, is_weights).has_value();
  if (has("config.json") && has_weights) return;
  refuse_cache(path, names);
  if (has("adapter_config.json"))
    fail(ErrorCode::kUnsupported,
         "[{}] is an adapter (adapter_config.json), not a model; give its base model, and this folder as "
         "--adapter "
         "(adapter= in Python)",
         path);
  if (const auto gguf = first_with(names, [](const std::string& name) { return name.ends_with(".gguf"); }))
    fail(ErrorCode::kIo, "[{}] holds {}; give the file itself, which is a whole model: {}/{}", path, *gguf,
         path.ends_with('/') ? path.substr(0, path.size() - 1) : path, *gguf);
  if (const auto pickle = first_with(names, is_pickle); pickle && !has_weights)
    fail(ErrorCode::kUnsupported,
         "[{}] holds its weights as {}; name it pytorch_model.bin if it holds a dict of tensors with the "
         "names "
         "that transformers gives them",
         path, *pickle);
  if (has("params.json") && !has("config.json"))
    fail(ErrorCode::kUnsupported,
         "[{}] holds params.json but no config.json, as its makers publish models; take the folder that is "
         "made "
         "for transformers",
         path);
  if (has("tokenizer.model") && !has("config.json"))
    fail(ErrorCode::kIo, "[{}] holds tokenizer.model alone; a model also has config.json and safetensors",
         path);
}

void require_model_folder(const std::string& path) {
  refuse_other_formats(path);
  if (is_folder(path) || is_gguf(path)) return;
  fail(ErrorCode::kIo, "[{}] {}; a model is the folder that save_pretrained writes, or a GGUF file", path,
       path_exists(path) ? "is not a folder" : "there is no such folder");
}

}  // namespace heddle
