#include "heddle/model/hf/stored_names.h"

#include <algorithm>
#include <string_view>

namespace heddle {
namespace {

// Tensors that old files store, and that follow from the configuration.
constexpr std::string_view kDerived[] = {"rotary_emb.inv_freq",   "rotary_pos_emb.inv_freq",
                                         "rotary_emb.cos_cached", "rotary_emb.sin_cached",
                                         ".masked_bias",          ".embed_positions.weights"};
// Scales of activations, keys and values in fp8, which heddle does not round.
constexpr std::string_view kActivationScales[] = {
    ".input_scale", ".activation_scale", ".input_scale_ub", ".input_global_scale", ".k_scale", ".v_scale"};
// Causal masks, [1, 1, n, n]; other families have biases of these names.
constexpr std::string_view kMasks[] = {".attn.bias", ".attention.bias"};

struct OtherPart {
  std::string_view begin;
  const char* what;
};
// Found at the beginning of a name, or after "model.".
constexpr OtherPart kOtherParts[] = {
    {"mtp.", "a layer that predicts further tokens"},
    {"score.", "a classifier"},
    {"classifier.", "a classifier"},
    {"qa_outputs.", "a head for questions"},
    {"v_head.", "a value head"},
    {"vision_tower.", "the image encoder"},
    {"vision_model.", "the image encoder"},
    {"visual.", "the image encoder"},
    {"multi_modal_projector.", "the image encoder"},
    {"mm_projector.", "the image encoder"},
    {"embed_vision.", "the image encoder"},
    {"audio_tower.", "the audio encoder"},
    {"embed_audio.", "the audio encoder"},
};

// True for a tensor of a layer that predicts further tokens from the last one's output: such a layer has a
// projection that joins both (DeepSeek-AI, 2024: "DeepSeek-V3", section 2.2).
bool predicts_further(const Checkpoint& checkpoint, const std::string& name) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = name.find(kLayers);
  const size_t end = at == name.npos ? at : name.find('.', at + kLayers.size());
  return end != name.npos && checkpoint.has(name.substr(0, end) + ".eh_proj.weight");
}

}  // namespace

StoredNames::StoredNames(const Checkpoint& checkpoint, const TrunkNames& trunk)
    : checkpoint_(checkpoint), root_(trunk.root), stored_root_(trunk.root) {
  const std::vector<std::string>& names = checkpoint.names();
  // The last are those of a model in memory that saves other names, of a text model alone, and of a trunk alone.
  for (const std::string& root : {root_, "language_model." + root_, root_ + "language_model.",
                                  std::string("model."), std::string("language_model."), std::string()}) {
    const std::string first = root + trunk.layers + "0.";
    if (std::ranges::none_of(names, [&](const std::string& name) { return name.starts_with(first); }))
      continue;
    stored_root_ = root;
    return;
  }
}

std::string StoredNames::stored(const std::string& name) const {
  if (name.starts_with(root_)) return stored_root_ + name.substr(root_.size());
  const std::string inside = "language_model." + name;
  return !checkpoint_.has(name) && checkpoint_.has(inside) ? inside : name;
}

Unread why_unread(const Checkpoint& checkpoint, const std::string& name) {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  if (std::ranges::any_of(kDerived, ends)) return {Unread::kWithoutEffect};
  if (std::ranges::any_of(kActivationScales, ends))
    return {Unread::kOtherPart, "the rounding of activations to fp8"};
  if (checkpoint.shape(name).size() == 4 && std::ranges::any_of(kMasks, ends))
    return {Unread::kWithoutEffect};
  std::string_view rest = name;
  if (rest.starts_with("model.")) rest.remove_prefix(6);
  for (const auto& [begin, what] : kOtherParts)
    if (rest.starts_with(begin)) return {Unread::kOtherPart, what};
  if (predicts_further(checkpoint, name)) return {Unread::kOtherPart, "a layer that predicts further tokens"};
  return {};
}

}  // namespace heddle
