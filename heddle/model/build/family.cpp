#include "heddle/model/build/family.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/base/memory.h"
#include "heddle/model/hf/other_formats.h"

namespace heddle {
namespace {

// Types of models that people have and heddle lacks a part of; also with "_" and a suffix.
struct Lacking {
  std::initializer_list<std::string_view> types;
  const char* why;
};
const Lacking kLacking[] = {
    {{"qwen3_next", "qwen3_5", "kimi_linear", "olmo_hybrid"},
     "it has layers of linear attention (gated DeltaNet), for which there is no op yet"},
    {{"minimax"}, "it has layers of lightning attention, for which there is no op yet"},
    {{"mamba", "mamba2", "falcon_mamba", "falcon_h1", "jamba", "bamba", "zamba", "zamba2", "nemotron_h",
      "granitemoehybrid"},
     "it has state-space layers (Mamba), for which there is no op yet"},
    {{"recurrent_gemma", "rwkv", "xlstm"}, "it has recurrent layers, for which there is no op yet"},
    {{"lfm2"}, "it has layers of short convolutions, for which there is no op yet"},
    {{"deepseek_v32", "glm_moe_dsa"},
     "its attention chooses positions by an indexer, for which there is no op yet"},
    {{"bert", "roberta", "xlm_roberta", "distilbert", "electra", "deberta", "deberta_v2", "modernbert",
      "albert", "camembert"},
     "it is an encoder, which writes no text"},
};

// Why a model of this type cannot run; "" for those that nobody looked at.
std::string_view why_lacking(const Config& config) {
  const std::string type = config.model_type();
  for (const Lacking& lacking : kLacking)
    for (const std::string_view name : lacking.types)
      if (type.starts_with(name) && (type.size() == name.size() || type[name.size()] == '_'))
        return lacking.why;
  if (config.optional_bool("is_encoder_decoder", false))
    return "it has an encoder besides its decoder; models of one decoder run";
  return "";
}

const Family& family_of(const Config& config) {
  std::string known;
  for (const Family* family : all_families()) {
    if (config.model_type() == family->model_type || config.model_type() == family->also) return *family;
    known += std::string(known.empty() ? "" : ", ") + family->model_type;
  }
  const std::string_view why = why_lacking(config);
  config.refuse("model_type",
                why.empty() ? "supported are " + known : fmt::format("{}; supported are {}", why, known));
}

class CheckpointModel : public Model {
 public:
  CheckpointModel(const TextConfig& text, Checkpoint checkpoint)
      : checkpoint_(std::move(checkpoint)), names_(checkpoint_, family_of(text.config).trunk) {
    checkpoint_.set_fp8_format(text.fp8);
    tensors_.tied_outside = text.tied_outside;
    tensors_.has = [this](const std::string& tensor) { return checkpoint_.has(names_.stored(tensor)); };
    tensors_.dtype = [this](const std::string& tensor) { return checkpoint_.dtype(names_.stored(tensor)); };
    tensors_.same = [this](const std::string& a, const std::string& b) { return are_same(a, b); };
    definition_ = define_model(text.config, tensors_);
    tensors_.mixed = has_other_matrices();
    account_for_all();
  }

  const ModelInfo& info() const override { return definition_.info; }
  ModelGraph graph(const GraphRequest& request) const override {
    Builder builder(request, definition_.info, tensors_);
    definition_.build(builder);
    return builder.take();
  }
  SourceData source(const std::string& tensor) const override {
    const TensorView view = checkpoint_.weight(names_.stored(tensor));
    return {view.dtype, {view.shape.begin(), view.shape.end()}, view.data};
  }
  std::string fingerprint() const override { return checkpoint_.fingerprint(); }
  void forget(const std::string& tensor) const override { checkpoint_.forget(names_.stored(tensor)); }

 private:
  void note(std::string text) {
    definition_.info.notes.push_back(fmt::format("[{}] {}", checkpoint_.folder(), std::move(text)));
  }

  bool are_same(const std::string& a, const std::string& b) const {
    auto [place, is_new] = same_.try_emplace({a, b}, false);
    if (is_new) place->second = checkpoint_.same(names_.stored(a), names_.stored(b));
    return place->second;
  }

  bool has_other_matrices() const {
    for (const std::string& name : checkpoint_.names())
      if (checkpoint_.shape(name).size() > 1 && checkpoint_.is_float(name) &&
          checkpoint_.dtype(name) != definition_.info.weight_dtype)
        return true;
    return false;
  }

  // Every tensor of the checkpoint is read, or known to be needless: a model never leaves something out unsaid.
  void account_for_all() {
    const ModelGraph graph = this->graph(smallest_request());
    std::set<std::string> used;
    for (const auto& [name, spec] : graph.weights)
      for (const WeightSource& source : spec.sources) used.insert(names_.stored(source.tensor));
    for (const auto& [name, spec] : graph.vectors)
      for (const WeightSource& source : spec.sources) used.insert(names_.stored(source.tensor));
    const std::set<std::string> scales = scales_of(used);
    std::map<std::string, int> other_parts;
    std::vector<std::string> unknown;
    for (const std::string& name : checkpoint_.names()) {
      if (used.contains(name) || is_copy_of_embedding(name) || scales.contains(name)) continue;
      const Unread why = why_unread(checkpoint_, name);
      if (why.kind == Unread::kNeeded) unknown.push_back(name);
      if (why.kind == Unread::kOtherPart) ++other_parts[why.what];
    }
    if (!unknown.empty())
      fail(ErrorCode::kUnsupported,
           "[{}] holds {}{}, which {} with this config.json does not use; is config.json that of another "
           "model?",
           checkpoint_.folder(), brief(unknown.front()),
           unknown.size() > 1 ? fmt::format(" and {} more tensors", unknown.size() - 1) : "",
           definition_.info.family);
    for (const auto& [what, count] : other_parts)
      note(fmt::format("{} is not used: {} tensors", what, count));
    for (const auto& [pair, same] : same_)
      if (!same)
        note(fmt::format(
            "config.json ties {} to {}, but both are stored and differ; each is used as it is stored",
            pair.first, pair.second));
    const auto is_any = [&](bool (Checkpoint::*is)(const std::string&) const) {
      return std::ranges::any_of(
          used, [&](const std::string& name) { return checkpoint_.has(name) && (checkpoint_.*is)(name); });
    };
    if (is_any(&Checkpoint::is_rounded)) note("weights in float64 are rounded to float32");
    if (is_any(&Checkpoint::is_fp8))
      note("weights in fp8 are expanded to bf16; activations, keys and values are not rounded to fp8");
  }

  std::set<std::string> scales_of(const std::set<std::string>& used) const {
    std::set<std::string> scales;
    for (const std::string& name : used)
      if (checkpoint_.has(name)) scales.insert(checkpoint_.scales_of(name));
    return scales;
  }

  bool is_copy_of_embedding(const std::string& name) const {
    for (const auto& [pair, same] : same_)
      if (same && name == names_.stored(pair.first)) return true;
    return false;
  }

  static GraphRequest smallest_request() {
    GraphRequest request;
    request.shape = {
        .rows = 1, .sequences = 1, .wanted = 1, .pages_per_sequence = 1, .page_size = 16, .vocab = 1};
    request.sample = false;
    return request;
  }

  mutable Checkpoint checkpoint_;
  StoredNames names_;
  Inventory tensors_;
  Definition definition_;
  mutable std::map<std::pair<std::string, std::string>, bool> same_;
};

}  // namespace

namespace {

// The default where a family reads weights of another kind.
Fp8Format fp8_format_of(const Config& config) {
  const auto quantised = config.section("quantization_config");
  const bool other = quantised && quantised->optional_string("quant_method", "") == "mxfp4";
  return other ? Fp8Format{} : read_fp8_format(config);
}

}  // namespace

TextConfig text_config(const Config& config) {
  const std::string type = config.model_type();
  const auto inside = config.section("text_config");
  if (!inside) return {config, false, fp8_format_of(config)};
  for (const Family* family : all_families())
    if (type == family->inside && inside->model_type() == family->model_type) {
      const bool here = config.has("quantization_config");
      const Fp8Format fp8 = here ? read_fp8_format(config) : fp8_format_of(*inside);
      config.note("model_type", "only its text model is read");
      return {*inside, config.optional_bool("tie_word_embeddings", true), fp8};
    }
  return {config, false, fp8_format_of(config)};
}

Definition define_model(const Config& config, const Inventory& tensors) {
  const Family& family = family_of(config);
  Definition definition = family.define(config, tensors);
  definition.info.family = family.model_type;
  definition.info.notes = config.notes();
  return definition;
}

std::unique_ptr<Model> open_model(const std::string& folder) {
  refuse_other_formats(folder);
  return with_memory_for("the description of the model", [&]() -> std::unique_ptr<Model> {
    return std::make_unique<CheckpointModel>(text_config(Config::load(folder)), Checkpoint(folder));
  });
}

}  // namespace heddle
