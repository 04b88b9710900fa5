#include "heddle/model/build/family.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/base/digest.h"
#include "heddle/base/error.h"
#include "heddle/base/gguf.h"
#include "heddle/base/memory.h"
#include "heddle/base/near_names.h"
#include "heddle/model/hf/adapter.h"
#include "heddle/model/hf/other_formats.h"

namespace heddle {
namespace {

// Types of models that people have and heddle lacks a part of.
struct Lacking {
  std::initializer_list<std::string_view> types;
  const char* why;
};
const Lacking kLacking[] = {
    {{"kimi_linear", "olmo_hybrid"},
     "its linear attention is not that of Qwen (Kimi Delta Attention, or gated DeltaNet with negative "
     "eigenvalues), for which "
     "there is no op yet"},
    {{"minimax", "minimax_text_01", "minimax_m1"},
     "it has layers of lightning attention, for which there is no op yet"},
    {{"mamba", "mamba2", "falcon_mamba", "jamba", "zamba", "zamba2"},
     "it has state-space layers (Mamba), for which there is no op yet"},
    {{"recurrent_gemma", "rwkv", "xlstm"}, "it has recurrent layers, for which there is no op yet"},
    {{"lfm2_vl", "lfm3", "lfm3_vl"}, "heddle reads the text of LFM2 alone, as lfm2 and lfm2_moe"},
    {{"deepseek_v32", "glm_moe_dsa", "minimax_m3_vl", "minimax_m3_vl_text", "mistral_large4",
      "mistral_large4_text"},
     "its attention chooses positions by an indexer, for which there is no op yet"},
    {{"gemma3n", "gemma3n_text"},
     "it has several residual streams, of which most are predicted (AltUp), for which there is no op yet"},
    {{"bert", "bert-generation", "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl",
      "distilbert", "electra", "deberta", "deberta-v2", "modernbert", "albert", "camembert"},
     "it is an encoder, which writes no text"},
};

// Returns why a model of this type cannot run, or "" for a type that nobody looked at.
std::string_view why_lacking(const Config& config) {
  const std::string type = config.model_type();
  for (const Lacking& lacking : kLacking)
    if (std::ranges::find(lacking.types, type) != lacking.types.end()) return lacking.why;
  if (config.optional_bool("is_encoder_decoder", false))
    return "it has an encoder besides its decoder; models of one decoder run";
  return "";
}

// Refuses a type that is none of `known`, and says what heddle lacks for it.
[[noreturn]] void refuse_type(const Config& config, const std::vector<std::string>& known) {
  const std::string_view why = why_lacking(config);
  config.refuse("model_type",
                fmt::format("{}{}supported are {}", why, why.empty() ? "" : "; ", fmt::join(known, ", ")));
}

const Family& family_of(const Config& config) {
  std::vector<std::string> known;
  for (const Family* family : all_families()) {
    if (family->reads(config.model_type())) return *family;
    known.push_back(family->model_type);
    for (const FamilyName& name : family->also)
      if (*name.inside == 0) known.push_back(name.model_type);
  }
  std::ranges::sort(known);
  refuse_type(config, known);
}

SourceData data_of(const TensorView& view) {
  return {view.dtype, {view.shape.begin(), view.shape.end()}, view.data};
}

// Tensors that stand for some of a model's.
class Replacements : public WeightValues {
 public:
  Replacements(Checkpoint tensors, const StoredNames& names) : tensors_(std::move(tensors)), names_(names) {}

  bool has(const std::string& tensor) const override { return tensors_.has(names_.stored(tensor)); }
  SourceData source(const std::string& tensor) const override {
    return data_of(tensors_.weight(names_.stored(tensor)));
  }
  std::optional<SourceData> far(const std::string& tensor, const MemorySpace& space) const override {
    const auto found = tensors_.far(names_.stored(tensor), space);
    return found ? std::optional(data_of(*found)) : std::nullopt;
  }
  void forget(const std::string& tensor) const override { tensors_.forget(names_.stored(tensor)); }

 private:
  mutable Checkpoint tensors_;
  const StoredNames& names_;  // the model's
};

class CheckpointModel : public TensorModel {
 public:
  CheckpointModel(const TextConfig& text, Checkpoint checkpoint, const std::string& adapter)
      : checkpoint_(std::move(checkpoint)), names_(checkpoint_, family_of(text.config).trunk) {
    checkpoint_.set_code_format(text.codes);
    tensors_.tied_outside = text.tied_outside;
    tensors_.has = [this](const std::string& tensor) { return checkpoint_.has(names_.stored(tensor)); };
    tensors_.dtype = [this](const std::string& tensor) { return checkpoint_.dtype(names_.stored(tensor)); };
    tensors_.shape = [this](const std::string& tensor) { return checkpoint_.shape(names_.stored(tensor)); };
    tensors_.coding = [this](const std::string& tensor) { return checkpoint_.coding(names_.stored(tensor)); };
    tensors_.same = [this](const std::string& a, const std::string& b) { return are_same(a, b); };
    definition_ = define_model(text.config, tensors_);
    tensors_.mixed = has_other_matrices();
    account_for_all();
    if (!adapter.empty()) merge(adapter);
  }

  const ModelInfo& info() const override { return definition_.info; }
  ModelGraph graph(const GraphRequest& request) const override {
    Builder builder(request, definition_.info, tensors_);
    definition_.build(builder);
    return builder.take();
  }
  SourceData source(const std::string& tensor) const override {
    return data_of(checkpoint_.weight(names_.stored(tensor)));
  }
  SourceCodes codes(const std::string& tensor) const override {
    return checkpoint_.codes(names_.stored(tensor));
  }
  std::string fingerprint() const override {
    std::string base = checkpoint_.fingerprint();
    if (!adapter_) return base;
    const std::string own = adapter_->fingerprint();
    return digest_of(std::vector<std::string_view>{base, own});
  }
  void forget(const std::string& tensor) const override { checkpoint_.forget(names_.stored(tensor)); }

  std::unique_ptr<WeightValues> replacing(std::shared_ptr<TensorSource> tensors) const override {
    Checkpoint given(std::move(tensors), "{}");
    for (const std::string& name : given.names()) require_replaceable(name, given);
    return std::make_unique<Replacements>(std::move(given), names_);
  }

 private:
  void require_replaceable(const std::string& name, const Checkpoint& given) const {
    const TensorEntry& entry = given.entry(name);
    if (checkpoint_.is_changed(name))
      fail(ErrorCode::kInvalidArgument,
           "[{}] an adapter is merged into {}, which new values would drop; load the model without it",
           given.folder(), name);
    if (const auto found = sources_.find(name); found != sources_.end()) {
      const DType type = checkpoint_.dtype(name);
      if (entry.dtype == type && entry.shape == checkpoint_.shape(name)) return;
      fail(ErrorCode::kInvalidArgument, "[{}] {} is {} {}; must be {} {}, as it was loaded", given.folder(),
           name, entry.dtype ? ::heddle::name(*entry.dtype) : entry.type, shape_text(entry.shape),
           ::heddle::name(type), shape_text(checkpoint_.shape(name)));
    }
    // A second name, such as that of a tied head.
    const auto is_same = [&](const std::string& other) {
      return entry.shape.size() > 1 && given.has(other) && given.same(name, other);
    };
    if (std::ranges::any_of(sources_, is_same) || why_unread(given, name).kind != Unread::kNeeded) return;
    if (is_copy_of_embedding(name))
      fail(ErrorCode::kInvalidArgument,
           "[{}] {} is tied to the embedding; give the embedding too, with the same numbers", given.folder(),
           name);
    fail(ErrorCode::kInvalidArgument, "[{}] the model reads no tensor {}{}", given.folder(), brief(name),
         did_you_mean(name, std::vector<std::string>(sources_.begin(), sources_.end())));
  }

  void merge(const std::string& folder) {
    adapter_ = std::make_shared<const Adapter>(folder);
    for (const std::string& note : adapter_->notes()) definition_.info.notes.push_back(note);
    for (const auto& [module, tensor] : adapter_->copies()) {
      const std::string name = stored_weight(module, tensor);
      adapter_->require_copy(tensor, checkpoint_.weight(name));
      checkpoint_.forget(name);
    }
    for (const Adapter::Product& product : adapter_->products()) {
      const std::string name = stored_weight(product.module, product.a);
      const bool transposed = transposed_.contains(name);
      adapter_->require_fit(product, checkpoint_.shape(name), transposed);
      checkpoint_.change(name, [adapter = adapter_, &product, transposed](const TensorView& weight) {
        return adapter->merged(product, weight, transposed);
      });
    }
  }

  // The stored name of a module's weight. Classes of transformers may put the text model into another module than files do.
  std::string stored_weight(const std::string& module, const std::string& tensor) const {
    constexpr std::string_view kInside = "model.language_model.";
    std::vector<std::string> names = {module + ".weight"};
    if (names[0].starts_with(kInside)) names.push_back("model." + names[0].substr(kInside.size()));
    for (const std::string& name : names)
      if (const std::string stored = names_.stored(name); sources_.contains(stored)) return stored;
    fail(ErrorCode::kIo,
         "[{}] tensor {} is for {}, which the model in {} does not read as a matrix of its own{}",
         adapter_->file(), brief(tensor), brief(names[0]), checkpoint_.folder(),
         did_you_mean(names[0], std::vector<std::string>(sources_.begin(), sources_.end())));
  }

  void note(std::string text) {
    definition_.info.notes.push_back(fmt::format("[{}] {}", checkpoint_.folder(), std::move(text)));
  }

  bool are_same(const std::string& a, const std::string& b) const {
    auto [place, is_new] = same_.try_emplace({a, b}, false);
    if (is_new) place->second = checkpoint_.same(names_.stored(a), names_.stored(b));
    return place->second;
  }

  bool has_other_matrices() const {
    std::vector<std::string> others;
    std::unordered_set<const TensorEntry*> scales;  // which are no matrices, though some have two dimensions
    for (size_t i = 0; i < checkpoint_.names().size(); ++i) {
      const TensorEntry& stored = *checkpoint_.entries()[i];
      if (stored.shape.size() < 2 || stored.dtype == definition_.info.weight_dtype) continue;
      others.push_back(checkpoint_.names()[i]);
      if (const std::string of = checkpoint_.scales_of(others.back(), stored); !of.empty())
        scales.insert(checkpoint_.find(of));
    }
    return std::ranges::any_of(others, [&](const std::string& name) {
      return !scales.contains(checkpoint_.find(name)) && checkpoint_.is_float(name) &&
             checkpoint_.dtype(name) != definition_.info.weight_dtype;
    });
  }

  // Every tensor of the checkpoint is read, or known to be needless: a model never leaves something out unsaid.
  void account_for_all() {
    const Used used = find_used();
    std::map<std::string, int> other_parts;
    std::vector<std::string> unknown;
    for (size_t i = 0; i < checkpoint_.names().size(); ++i) {
      const std::string& name = checkpoint_.names()[i];
      if (used.tensors.contains(checkpoint_.entries()[i]) || is_copy_of_embedding(name)) continue;
      const Unread why = why_unread(checkpoint_, name);
      if (why.kind == Unread::kOtherPart) ++other_parts[why.what];
      if (why.kind != Unread::kNeeded) continue;
      if (checkpoint_.is_listed(name))
        unknown.push_back(name);
      else
        ++other_parts["what the index of the shards does not name"];
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
    if (used.rounded) note("weights in float64 are rounded to float32");
    if (used.fp8) note("weights are in fp8; activations, keys and values are not rounded to fp8");
  }

  struct Used {
    std::unordered_set<const TensorEntry*> tensors;
    bool rounded = false, fp8 = false;  // there are some
  };

  // The tensors that the graph reads, and their scales. Names the first that is missing: of layers 3 and 10 that of layer 3.
  Used find_used() {
    const ModelGraph graph = this->graph(smallest_request());
    Used used;
    used.tensors.reserve(checkpoint_.names().size());
    std::optional<std::string> missing;
    const auto before = [](const std::string& a, const std::string& b) {
      return std::pair(a.size(), std::string_view(a)) < std::pair(b.size(), std::string_view(b));
    };
    const auto add = [&](const WeightSource& source) {
      const std::string name = names_.stored(source.tensor);
      sources_.insert(name);
      if (source.transposed) transposed_.insert(name);
      const TensorEntry* entry = checkpoint_.find(name);
      if (!entry) {
        if (!missing || before(name, *missing)) missing = name;
        return;
      }
      if (!used.tensors.insert(entry).second) return;
      used.rounded |= Checkpoint::is_rounded(*entry);
      for (const TensorEntry* part : checkpoint_.parts_beside(name)) used.tensors.insert(part);
      used.fp8 |= checkpoint_.is_fp8(name);
    };
    for (const auto& [name, spec] : graph.weights) std::ranges::for_each(spec.sources, add);
    for (const auto& [name, spec] : graph.vectors) std::ranges::for_each(spec.sources, add);
    if (missing) (void)checkpoint_.entry(*missing);  // which says why
    return used;
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
  std::set<std::string> sources_;  // the stored names of what the graph reads
  std::set<std::string> transposed_;
  std::shared_ptr<const Adapter> adapter_;  // null: none
  mutable std::map<std::pair<std::string, std::string>, bool> same_;
};

}  // namespace

namespace {

// The default where a family reads weights of another kind.
CodeFormat code_format_of(const Config& config) {
  const auto quantised = config.section("quantization_config");
  const bool other = quantised && quantised->optional_string("quant_method", "") == "mxfp4";
  return other ? CodeFormat{} : read_code_format(config);
}

}  // namespace

bool Family::reads(std::string_view type, std::string_view around) const {
  return (around.empty() && type == model_type) || std::ranges::any_of(also, [&](const FamilyName& name) {
           return type == name.model_type && (around.empty() || around == name.inside);
         });
}

TextConfig text_config(const Config& config) {
  const std::string type = config.model_type();
  const auto inside = config.section("text_config");
  if (!inside) return {config, false, code_format_of(config)};
  std::vector<std::string> known;
  for (const Family* family : all_families()) {
    for (const FamilyName& name : family->also)
      if (type == name.inside) known.push_back(name.model_type);
    if (!family->reads(inside->model_type(), type)) continue;
    const bool here = config.has("quantization_config");
    const CodeFormat codes = here ? read_code_format(config) : code_format_of(*inside);
    config.note("model_type", "only its text model is read");
    return {*inside, config.optional_bool("tie_word_embeddings", true), codes};
  }
  if (!known.empty()) refuse_type(*inside, known);
  return {config, false, code_format_of(config)};
}

Definition define_model(const Config& config, const Inventory& tensors) {
  const Family& family = family_of(config);
  Definition definition = family.define(config, tensors);
  definition.info.family = family.model_type;
  definition.info.notes = config.notes();
  return definition;
}

namespace {

std::unique_ptr<TensorModel> model_of(const Config& config, const std::function<Checkpoint()>& open,
                                      const std::string& adapter) {
  return with_memory_for("the description of the model", [&]() -> std::unique_ptr<TensorModel> {
    const TextConfig text = text_config(config);
    // The configuration is refused before anything is said about weights, which may not be here yet.
    const Inventory none{.has = [](const std::string&) { return false; },
                         .dtype = [](const std::string&) { return DType::kBf16; }};
    (void)define_model(text.config, none);
    return std::make_unique<CheckpointModel>(text, open(), adapter);
  });
}

}  // namespace

std::unique_ptr<TensorModel> open_model(const std::string& folder, const std::string& adapter) {
  refuse_other_formats(folder);
  // Its files have rows of heads in another order than transformers.
  if (!adapter.empty() && is_gguf(folder))
    fail(ErrorCode::kUnsupported,
         "[{}] an adapter is merged into a folder of transformers, not into GGUF: {}", adapter, folder);
  return model_of(
      Config::load(folder), [&] { return Checkpoint(folder); }, adapter);
}

std::unique_ptr<TensorModel> open_model(const std::string& config, std::shared_ptr<TensorSource> tensors,
                                        const std::string& adapter) {
  return model_of(
      Config::parse(config, "config"), [&] { return Checkpoint(std::move(tensors), config); }, adapter);
}

}  // namespace heddle
