// Checkpoints as people have them: what is stored is used, known to be needless, or refused by name.
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/model/build/family.h"
#include "tests/support/golden.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

const std::string kGoldenModels = HEDDLE_SOURCE_DIR "/tests/goldens/models/";

// A copy of a golden's folder, to be changed.
class Copy {
 public:
  explicit Copy(const std::string& golden) : golden_(golden) {
    scratch_.link_model(kGoldenModels + golden, "model");
  }
  Copy& config(const std::function<void(Json&)>& change) {
    edit_json(folder() + "/config.json", change);
    return *this;
  }
  Copy& tensors(const std::function<void(EditableTensors&)>& change) {
    edit_tensors(folder() + "/model.safetensors", change);
    return *this;
  }
  // The first logits of the golden's text, and the notes.
  std::vector<float> logits() {
    const std::shared_ptr<const Model> model = open_model(folder());
    notes = model->info().notes;
    return of(model);
  }
  std::vector<float> unchanged() const { return of(open_model(kGoldenModels + golden_)); }
  bool has_note(const std::string& part) const {
    return std::ranges::any_of(notes, [&](const std::string& note) { return note.find(part) != note.npos; });
  }
  std::string refusal() const {
    try {
      open_model(folder());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::string folder() const { return scratch_.path("model"); }

  std::vector<std::string> notes;

 private:
  std::vector<float> of(std::shared_ptr<const Model> model) const {
    Engine engine(std::move(model), {.workers = 2, .max_sequences = 1, .all_logits = true});
    const Golden golden = load_golden(golden_);
    return logits_of(engine, std::span(golden.tokens).first(9), 9);
  }

  Scratch scratch_;
  std::string golden_;
};

EditableTensor zeros(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return {DType::kF32, std::move(shape), std::vector<std::byte>(size_t(count) * 4)};
}

void rename(EditableTensors& tensors, const std::string& from, const std::string& to) {
  EditableTensors renamed;
  for (auto& [name, tensor] : tensors)
    renamed[name.starts_with(from) ? to + name.substr(from.size()) : name] = std::move(tensor);
  tensors = std::move(renamed);
}

TEST(CheckpointReading, UsesAHeadThatIsStoredAndDiffersFromATiedEmbedding) {
  Copy copy("llama2-tiny");
  copy.config([](Json& json) { json["tie_word_embeddings"] = true; });
  EXPECT_EQ(copy.logits(), copy.unchanged());
  EXPECT_TRUE(copy.has_note("ties lm_head.weight to model.embed_tokens.weight"));
  copy.tensors([](EditableTensors& t) { t["lm_head.weight"] = t["model.embed_tokens.weight"]; });
  const std::vector<float> tied = copy.logits();
  EXPECT_TRUE(copy.notes.empty());
  EXPECT_NE(tied, copy.unchanged());
  copy.tensors([](EditableTensors& t) { t.erase("lm_head.weight"); });
  EXPECT_EQ(copy.logits(), tied);
}

TEST(CheckpointReading, TakesTheOnlyOneOfTwoTiedTensorsThatIsStored) {
  Copy copy("llama3-tiny");
  copy.tensors([](EditableTensors& t) { rename(t, "model.embed_tokens.", "lm_head."); });
  EXPECT_EQ(copy.logits(), copy.unchanged());
}

TEST(CheckpointReading, FindsTrunksUnderOtherNames) {
  for (const std::string root : {"", "language_model.model.", "model.language_model."}) {
    Copy copy("llama2-tiny");
    copy.tensors([&](EditableTensors& t) { rename(t, "model.", root); });
    copy.config([](Json& json) { json["architectures"] = Json::array({"LlamaModel"}); });
    EXPECT_EQ(copy.logits(), copy.unchanged()) << root;
    EXPECT_TRUE(copy.has_note("its trunk is read as that of LlamaForCausalLM"));
  }
  Copy gpt2("gpt2-tiny");
  gpt2.tensors([](EditableTensors& t) { rename(t, "transformer.", ""); });
  EXPECT_EQ(gpt2.logits(), gpt2.unchanged());
}

// The named matrices of all experts at `at`, which lose them: [experts, rows of all parts, cols]
EditableTensor stack_experts(EditableTensors& tensors, const std::string& at,
                             std::initializer_list<const char*> parts) {
  EditableTensor made{DType::kF32, {0, 0, 0}, {}};
  for (int64_t& expert = made.shape[0];
       tensors.contains(fmt::format("{}{}.{}.weight", at, expert, *parts.begin())); ++expert)
    for (const char* part : parts) {
      const auto one = tensors.extract(fmt::format("{}{}.{}.weight", at, expert, part));
      const EditableTensor& matrix = one.mapped();
      made.dtype = matrix.dtype;
      made.shape[1] += expert == 0 ? matrix.shape[0] : 0;
      made.shape[2] = matrix.shape[1];
      made.data.insert(made.data.end(), matrix.data.begin(), matrix.data.end());
    }
  return made;
}

// The matrices of a tensor f32 [count, rows, cols] become [cols, rows].
void transpose_each(EditableTensor& tensor) {
  const size_t count = size_t(tensor.shape[0]), rows = size_t(tensor.shape[1]),
               cols = size_t(tensor.shape[2]);
  const std::vector<std::byte> before = tensor.data;
  for (size_t e = 0; e < count; ++e)
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < cols; ++c)
        std::memcpy(&tensor.data[4 * ((e * cols + c) * rows + r)], &before[4 * ((e * rows + r) * cols + c)],
                    4);
  std::swap(tensor.shape[1], tensor.shape[2]);
}

void replace_in_names(EditableTensors& tensors, const std::string& from, const std::string& to) {
  EditableTensors renamed;
  for (auto& [name, tensor] : tensors) {
    const size_t at = name.find(from);
    renamed[at == name.npos ? name : name.substr(0, at) + to + name.substr(at + from.size())] =
        std::move(tensor);
  }
  tensors = std::move(renamed);
}

// As transformers names the parameters of its modules, and as trainers save them.
TEST(CheckpointReading, ReadsTheExpertsOfALayerAsOneTensor) {
  for (const auto& [golden, block, gate, up, down] :
       {std::array{"mixtral-tiny", "block_sparse_moe.", "w1", "w3", "w2"},
        {"minimax_m2-tiny", "block_sparse_moe.", "w1", "w3", "w2"},
        {"qwen2_moe-tiny", "mlp.", "gate_proj", "up_proj", "down_proj"},
        {"qwen3_moe-tiny", "mlp.", "gate_proj", "up_proj", "down_proj"},
        {"deepseek_v2-moe", "mlp.", "gate_proj", "up_proj", "down_proj"},
        {"deepseek_v3-moe", "mlp.", "gate_proj", "up_proj", "down_proj"},
        {"glm4_moe-tiny", "mlp.", "gate_proj", "up_proj", "down_proj"},
        {"olmoe-tiny", "mlp.", "gate_proj", "up_proj", "down_proj"}}) {
    Copy copy(golden);
    int layers = 0;
    copy.tensors([&, block = block, gate = gate, up = up, down = down](EditableTensors& t) {
      for (int l = 0; l < 8; ++l) {
        const std::string at = fmt::format("model.layers.{}.{}experts.", l, block);
        if (!t.contains(fmt::format("{}0.{}.weight", at, gate))) continue;
        ++layers;
        t[at + "gate_up_proj"] = stack_experts(t, at, {gate, up});
        t[at + "down_proj"] = stack_experts(t, at, {down});
      }
    });
    EXPECT_GT(layers, 0) << golden;
    EXPECT_EQ(copy.logits(), copy.unchanged()) << golden;
    copy.tensors([](EditableTensors& t) { replace_in_names(t, ".block_sparse_moe.", ".mlp."); });
    EXPECT_EQ(copy.logits(), copy.unchanged()) << golden << " with the names of modules";
  }
  for (const char* golden : {"granitemoe-tiny", "granitemoehybrid-tiny"}) {
    Copy copy(golden);
    copy.tensors([](EditableTensors& t) {
      replace_in_names(t, "moe.input_linear.weight", "moe.experts.gate_up_proj");
      replace_in_names(t, "moe.output_linear.weight", "moe.experts.down_proj");
      replace_in_names(t, "moe.router.layer.weight", "moe.router.weight");
    });
    EXPECT_EQ(copy.logits(), copy.unchanged()) << golden;
  }
}

// transformers reads what the shards hold, whatever their index says.
TEST(CheckpointReading, TakesAnIndexThatIsStale) {
  Copy copy("llama-sharded");
  EXPECT_EQ(copy.logits(), copy.unchanged());
  const std::string index = copy.folder() + "/model.safetensors.index.json";
  edit_json(index, [](Json& json) {
    Json kept;
    for (const auto& [name, file] : json.at("weight_map").members())
      if (name != "model.norm.weight") kept[name] = file;
    kept["mtp.fc.weight"] = json.at("weight_map").at("model.norm.weight");
    json["weight_map"] = std::move(kept);
  });
  EXPECT_EQ(copy.logits(), copy.unchanged());
}

TEST(CheckpointReading, SaysAtOnceWhichTensorIsMissing) {
  Copy copy("llama2-tiny");
  copy.tensors([](EditableTensors& t) { t.erase("model.layers.1.mlp.up_proj.weight"); });
  EXPECT_NE(copy.refusal().find("has no tensor \"model.layers.1.mlp.up_proj.weight\""), std::string::npos);
}

TEST(CheckpointReading, RefusesATypeBeforeItsWeightsAreThere) {
  Copy copy("llama2-tiny");
  std::filesystem::remove(copy.folder() + "/model.safetensors");
  EXPECT_NE(copy.refusal().find("holds no weights"), std::string::npos) << copy.refusal();
  copy.config([](Json& json) { json["model_type"] = "rwkv"; });
  EXPECT_NE(copy.refusal().find("recurrent layers"), std::string::npos) << copy.refusal();
  copy.config([](Json& json) { json["model_type"] = "llama", json["hidden_act"] = "relu"; });
  EXPECT_NE(copy.refusal().find("hidden_act = \"relu\""), std::string::npos) << copy.refusal();
}

TEST(CheckpointReading, NamesTheTypeInsideAnother) {
  Copy copy("mistral-tiny");
  copy.config([](Json& json) {
    Json text = json;
    text["model_type"] = "mistral5";
    json = Json::object({{"model_type", "mistral3"}, {"text_config", text}});
  });
  const std::string text = copy.refusal();
  EXPECT_NE(text.find("text_config.model_type = \"mistral5\""), std::string::npos) << text;
  EXPECT_NE(text.find("supported are ministral3, mistral, mistral4"), std::string::npos) << text;
}

TEST(CheckpointReading, LeavesOutWhatIsKnownToBeNeedless) {
  Copy llama("llama3-tiny");
  llama.config([](Json& json) { json["architectures"] = Json::array({"LlamaForSequenceClassification"}); });
  llama.tensors([](EditableTensors& t) {
    t["score.weight"] = zeros({2, 60});
    t["model.layers.0.self_attn.rotary_emb.inv_freq"] = zeros({10});
  });
  EXPECT_EQ(llama.logits(), llama.unchanged());
  EXPECT_TRUE(llama.has_note("a classifier is not used: 1 tensors"));

  Copy gpt2("gpt2-tiny");
  gpt2.tensors([](EditableTensors& t) {
    t["transformer.h.0.attn.bias"] = zeros({1, 1, 96, 96});
    t["transformer.h.0.attn.masked_bias"] = zeros({});
  });
  EXPECT_EQ(gpt2.logits(), gpt2.unchanged());
  EXPECT_TRUE(gpt2.notes.empty());

  Copy deepseek("deepseek_v3-tiny");
  deepseek.tensors([](EditableTensors& t) {
    t["model.layers.3.eh_proj.weight"] = zeros({40, 80});
    t["model.layers.3.mlp.up_proj.weight"] = zeros({77, 40});
  });
  EXPECT_EQ(deepseek.logits(), deepseek.unchanged());
  EXPECT_TRUE(deepseek.has_note("a layer that predicts further tokens is not used: 2 tensors"));
}

TEST(CheckpointReading, RefusesOtherTensorsByName) {
  for (const std::string name :
       {"model.layers.0.self_attn.q_proj.bias", "model.layers.1.mlp.up_proj.weight_scale",
        "model.layers.3.mlp.up_proj.weight", "transformer.h.0.attn.bias", "lm_head.bias"}) {
    Copy copy("llama2-tiny");
    copy.tensors([&](EditableTensors& t) { t[name] = zeros({40}); });
    EXPECT_NE(copy.refusal().find("holds \"" + name + "\", which llama"), std::string::npos)
        << copy.refusal();
  }
}

// Rounds a tensor of f32 to bf16, stored as `type`.
void round_to_bf16(EditableTensor& tensor, DType type) {
  std::vector<std::byte> data(tensor.data.size() / 4 * size_t(size_of(type)));
  for (size_t i = 0; i < tensor.data.size() / 4; ++i) {
    const float value = float(load_number(DType::kF32, tensor.data.data() + 4 * i));
    store_number(type, data.data() + i * size_t(size_of(type)), double(round_to(DType::kBf16, value)));
  }
  tensor.data = std::move(data), tensor.dtype = type;
}

TEST(CheckpointReading, HoldsMatricesOfSeveralTypesExactly) {
  std::vector<std::vector<float>> results;
  for (DType type : {DType::kBf16, DType::kF32}) {
    Copy copy("llama2-tiny");
    copy.tensors([&](EditableTensors& t) {
      round_to_bf16(t["model.layers.1.self_attn.q_proj.weight"], type);  // k and v stay f32
      round_to_bf16(t["model.layers.2.mlp.down_proj.weight"], type);
      round_to_bf16(t["lm_head.weight"], type);
    });
    results.push_back(copy.logits());
  }
  // Products with bf16 may round their inputs.
  EXPECT_LE(largest_difference(results[0], results[1]), load_golden("llama2-tiny").bf16_error);
  EXPECT_NE(results[0], Copy("llama2-tiny").unchanged());

  // A head in f32 on a body in bf16.
  Copy copy("llama-v4");
  copy.tensors([](EditableTensors& t) {
    EditableTensor& head = t["lm_head.weight"];
    std::vector<std::byte> data(head.data.size() * 2);
    for (size_t i = 0; i < head.data.size() / 2; ++i)
      store_number(DType::kF32, data.data() + 4 * i, load_number(DType::kBf16, head.data.data() + 2 * i));
    head.data = std::move(data), head.dtype = DType::kF32;
  });
  EXPECT_LE(largest_difference(copy.logits(), copy.unchanged()), load_golden("llama-v4").bf16_error);
}

// Tensors of a gpt-oss with one layer, two experts, and 32 wide everywhere, all drawn from a counter.
EditableTensors tiny_gpt_oss(bool packed) {
  EditableTensors made;
  u32 state = 1;
  const auto draw = [&] { return (state = state * 1664525u + 1013904223u) >> 16; };
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    EditableTensor& tensor = made[name] = zeros(std::move(shape));
    tensor.dtype = DType::kBf16, tensor.data.resize(tensor.data.size() / 2);
    for (size_t i = 0; i < tensor.data.size() / 2; ++i)
      store_number(DType::kBf16, tensor.data.data() + 2 * i, double(draw() % 64) / 100 - 0.3);
  };
  add("model.embed_tokens.weight", {131, 32}), add("lm_head.weight", {131, 32}),
      add("model.norm.weight", {32});
  const std::string at = "model.layers.0.";
  add(at + "input_layernorm.weight", {32}), add(at + "post_attention_layernorm.weight", {32});
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    add(at + "self_attn." + name + ".weight", {32, 32}), add(at + "self_attn." + name + ".bias", {32});
  add(at + "self_attn.sinks", {2});
  add(at + "mlp.router.weight", {2, 32}), add(at + "mlp.router.bias", {2});
  add(at + "mlp.experts.gate_up_proj_bias", {2, 64}), add(at + "mlp.experts.down_proj_bias", {2, 32});
  constexpr double kCodes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (const auto& [name, rows] : {std::pair{"gate_up_proj", 64}, {"down_proj", 32}}) {
    const std::string tensor = at + "mlp.experts." + name;
    const size_t blocks = size_t(2 * rows);  // a row is one block
    EditableTensor codes{DType::kU8, {2, rows, 1, 16}, std::vector<std::byte>(blocks * 16)};
    EditableTensor scales{DType::kU8, {2, rows, 1}, std::vector<std::byte>(blocks, std::byte{124})};
    EditableTensor floats = zeros({2, 32, rows});  // each expert's, transposed
    floats.dtype = DType::kBf16, floats.data.resize(floats.data.size() / 2);
    for (size_t row = 0; row < blocks; ++row)
      for (size_t col = 0; col < 32; ++col) {
        const u32 code = draw() % 16;
        codes.data[row * 16 + col / 2] |= std::byte(code << (col % 2 * 4));
        const size_t expert = row / size_t(rows),
                     to = (expert * 32 + col) * size_t(rows) + row % size_t(rows);
        store_number(DType::kBf16, floats.data.data() + 2 * to, kCodes[code % 8] * (code < 8 ? 1 : -1) / 8);
      }
    if (packed)
      made[tensor + "_blocks"] = codes, made[tensor + "_scales"] = scales;
    else
      made[tensor] = floats;
  }
  return made;
}

TEST(CheckpointReading, ExpandsExpertsInMxfp4) {
  std::vector<std::vector<float>> results;
  for (bool packed : {true, false}) {
    Copy copy("gpt_oss-tiny");
    copy.config([&](Json& json) {
      for (const char* key : {"hidden_size", "intermediate_size"}) json[key] = 32;
      json["num_attention_heads"] = json["num_key_value_heads"] = json["num_local_experts"] = 2;
      json["num_hidden_layers"] = json["num_experts_per_tok"] = 1;
      json["head_dim"] = 16;
      json["layer_types"] = Json::array({"full_attention"});
      if (packed) json["quantization_config"] = Json::object({{"quant_method", "mxfp4"}});
    });
    copy.tensors([&](EditableTensors& t) { t = tiny_gpt_oss(packed); });
    results.push_back(copy.logits());
  }
  EXPECT_EQ(results[0], results[1]);
}

// As the block-wise fp8 of DeepSeek V3 and others: the projections, not the embedding, the norms or the head.
TEST(CheckpointReading, ReadsWeightsInFp8) {
  constexpr int kBlock = 16;
  std::vector<std::vector<float>> results;
  for (bool packed : {true, false}) {
    Copy copy("llama-v4");
    if (packed)
      copy.config([&](Json& json) {
        json["quantization_config"] =
            Json::object({{"quant_method", "fp8"}, {"weight_block_size", Json::array({kBlock, kBlock})}});
      });
    copy.tensors([&](EditableTensors& tensors) {
      EditableTensors more;
      for (auto& [name, tensor] : tensors) {
        if (name.find("_proj.weight") == name.npos) continue;
        const i64 rows = tensor.shape[0], cols = tensor.shape[1], across = (cols + kBlock - 1) / kBlock;
        EditableTensor codes{DType::kF8E4M3, tensor.shape, std::vector<std::byte>(size_t(rows * cols))};
        EditableTensor scales = zeros({(rows + kBlock - 1) / kBlock, across});
        for (i64 at = 0; at < rows * cols; ++at) {
          const i64 block = at / cols / kBlock * across + at % cols / kBlock;
          const float scale = 0.003f + 0.001f * float(block % 5);
          store_number(DType::kF32, scales.data.data(), block, double(scale));
          std::byte* weight = tensor.data.data() + 2 * at;
          store_number(DType::kF8E4M3, &codes.data[size_t(at)],
                       load_number(DType::kBf16, weight) / double(scale));
          const double code = load_number(DType::kF8E4M3, &codes.data[size_t(at)]);
          store_number(DType::kBf16, weight, double(float(code) * scale));
        }
        if (!packed) continue;
        tensor = codes;
        more[name + "_scale_inv"] = scales;
        more[name.substr(0, name.size() - 6) + "input_scale"] = zeros({1});
      }
      tensors.merge(more);
    });
    results.push_back(copy.logits());
    EXPECT_EQ(copy.has_note("weights are in fp8"), packed);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(CheckpointReading, NotesKeysWithoutEffect) {
  Copy copy("llama2-tiny");
  copy.config([](Json& json) {
    json["pretraining_tp"] = 2;
    json["sliding_window"] = 3;
    json["rope_parameters"]["mrope_section"] = Json::array({1, 2, 1});
  });
  EXPECT_EQ(copy.logits(), copy.unchanged());
  EXPECT_TRUE(copy.has_note("pretraining_tp = 2"));
  EXPECT_TRUE(copy.has_note("sliding_window = 3"));
  EXPECT_TRUE(copy.has_note("rope_parameters.mrope_section = [1,2,1]"));
}

TEST(CheckpointReading, ReadsTheTextModelInsideOneThatSeesImages) {
  Copy copy("gemma3-tiny");
  copy.config([](Json& json) {
    const Json text = json;
    json = Json::object({{"model_type", "gemma3"}, {"text_config", text}});
    json["architectures"] = Json::array({"Gemma3ForConditionalGeneration"});
  });
  copy.tensors([](EditableTensors& t) {
    rename(t, "model.", "language_model.model.");
    t["vision_tower.vision_model.embeddings.patch_embedding.weight"] = zeros({4, 3, 2, 2});
    t["multi_modal_projector.mm_input_projection_weight"] = zeros({4, 40});
  });
  EXPECT_EQ(copy.logits(), copy.unchanged());
  EXPECT_TRUE(copy.has_note("only its text model is read"));
  EXPECT_TRUE(copy.has_note("the image encoder is not used: 2 tensors"));
}

// Published Qwen VL models stand inside another type, or (Qwen 2 VL and 2.5 VL of transformers 4) next to the keys of images. Their
// rope has sections for the positions of images, which are all one in a text.
TEST(CheckpointReading, ReadsTheTextOfQwenModelsThatSeeImages) {
  for (const auto& [golden, type, is_inside] : {std::tuple{"qwen3-head128", "qwen3_vl", true},
                                                {"qwen2-tiny", "qwen2_5_vl", true},
                                                {"qwen2-tiny", "qwen2_vl", true},
                                                {"qwen2-tiny", "qwen2_5_vl", false}}) {
    Copy copy(golden);
    copy.config([&, type = type, is_inside = is_inside](Json& json) {
      Json& rope = json["rope_parameters"];
      if (rope.is_null()) rope = Json::object();
      rope["mrope_section"] = Json::array({1, 1, 1}), rope["rope_type"] = is_inside ? "default" : "mrope";
      json["architectures"] = nullptr;
      json["model_type"] = is_inside ? type + std::string("_text") : type;
      if (!is_inside) return;
      const Json text = json;
      json = Json::object({{"model_type", type}, {"text_config", text}});
    });
    copy.tensors([&, is_inside = is_inside](EditableTensors& t) {
      if (is_inside) rename(t, "model.", "model.language_model.");
      t[is_inside ? "model.visual.patch_embed.proj.weight" : "visual.patch_embed.proj.weight"] =
          zeros({4, 3, 2, 2});
    });
    EXPECT_EQ(copy.logits(), copy.unchanged()) << type;
    EXPECT_FALSE(copy.has_note("mrope_section")) << type;
    EXPECT_TRUE(copy.has_note("the image encoder is not used: 1 tensors")) << type;
  }
}

// Published Qwen 3 VL mixtures have the experts of a layer stacked and transposed; those that trainers save, only stacked.
TEST(CheckpointReading, ReadsTransposedExpertsOfQwen3Vl) {
  for (const bool is_transposed : {false, true}) {
    Copy copy("qwen3_moe-tiny");
    copy.config([](Json& json) {
      json["model_type"] = "qwen3_vl_moe_text", json["architectures"] = nullptr;
      const Json text = json;
      json = Json::object({{"model_type", "qwen3_vl_moe"}, {"text_config", text}});
    });
    copy.tensors([&](EditableTensors& t) {
      for (int l = 0; l < 3; ++l) {
        const std::string at = fmt::format("model.layers.{}.mlp.experts.", l);
        if (!t.contains(at + "0.gate_proj.weight")) continue;
        t[at + "gate_up_proj"] = stack_experts(t, at, {"gate_proj", "up_proj"});
        t[at + "down_proj"] = stack_experts(t, at, {"down_proj"});
        for (const char* name : {"gate_up_proj", "down_proj"})
          if (is_transposed) transpose_each(t[at + name]);
      }
      rename(t, "model.", "model.language_model.");
    });
    EXPECT_EQ(copy.logits(), copy.unchanged()) << is_transposed;
  }
}

// As published files name the bias of the router.
TEST(CheckpointReading, FindsTheBiasOfARouterBesideIt) {
  for (const auto& [golden, from, to] :
       {std::array{"exaone_moe-tiny", ".mlp.gate.e_score", ".mlp.e_score"},
        {"ernie4_5_moe-tiny", ".mlp.moe_statics.", ".mlp.gate.moe_statics."}}) {
    Copy copy(golden);
    copy.tensors([&, from = from, to = to](EditableTensors& t) {
      const auto has = [&](const char* part) {
        return std::ranges::any_of(
            t, [&](const auto& one) { return one.first.find(part) != std::string::npos; });
      };
      const bool is_published = has(to);
      ASSERT_TRUE(is_published || has(from)) << golden;
      is_published ? replace_in_names(t, to, from) : replace_in_names(t, from, to);
    });
    EXPECT_EQ(copy.logits(), copy.unchanged()) << golden;
  }
}

// Moonshot's name of DeepSeek V3. The text model of K2.5 stands next to an image encoder, with that name or transformers'.
TEST(CheckpointReading, ReadsKimiAsDeepseekV3) {
  Copy alone("deepseek_v3-tiny"), inside("deepseek_v3-tiny");
  alone.config([](Json& json) { json["model_type"] = "kimi_k2"; });
  EXPECT_EQ(alone.logits(), alone.unchanged());
  inside.config([](Json& json) { json = Json::object({{"model_type", "kimi_k25"}, {"text_config", json}}); });
  inside.tensors([](EditableTensors& t) {
    rename(t, "", "language_model.");
    t["vision_tower.patch_embed.proj.weight"] = t["mm_projector.linear_1.weight"] = zeros({4, 3, 2, 2});
  });
  EXPECT_EQ(inside.logits(), inside.unchanged());
  EXPECT_TRUE(inside.has_note("the image encoder is not used: 2 tensors"));
}

TEST(CheckpointReading, SaysWhyAModelOfAnotherKindCannotRun) {
  for (const auto& [type, why] : {std::pair{"olmo_hybrid", "linear attention"},
                                  {"kimi_linear", "Kimi Delta Attention"},
                                  {"mamba2", "state-space layers"},
                                  {"gemma3n", "residual streams"},
                                  {"mistral_large4_text", "chooses positions by an indexer"},
                                  {"xlm-roberta", "encoder, which writes no text"},
                                  {"minimax", "lightning attention"},
                                  {"t5", "an encoder besides its decoder"},
                                  {"qwen3_5x", "not supported; supported are arcee"},
                                  {"bert_x", "not supported; supported are arcee"}}) {
    Copy copy("gpt2-tiny");
    copy.config([&](Json& config) {
      config["model_type"] = type;
      config["is_encoder_decoder"] = std::string_view(type) == "t5";
    });
    const std::string text = copy.refusal();
    EXPECT_NE(text.find(why), std::string::npos) << text;
    EXPECT_NE(text.find("qwen3_moe"), std::string::npos) << text;
  }
}

// Around Mistral, its head is tied although the text model says no; a head that is stored is used.
TEST(CheckpointReading, TiesTheHeadWhereTheModelAroundTheTextModelDoes) {
  Copy tied("mistral-tiny"), around("mistral-tiny");
  const auto drop_head = [](EditableTensors& t) { t.erase("lm_head.weight"); };
  tied.config([](Json& json) { json["tie_word_embeddings"] = true; }).tensors(drop_head);
  around.config([](Json& json) {
    const Json text = json;
    json = Json::object({{"model_type", "mistral3"}, {"text_config", text}});
  });
  EXPECT_EQ(around.logits(), around.unchanged());
  around.tensors(drop_head);
  EXPECT_EQ(around.logits(), tied.logits());
  around.config([](Json& json) { json["tie_word_embeddings"] = false; });
  EXPECT_THROW(around.logits(), Error);
}

// A checkpoint that another process cuts or writes to after its first weight was packed.
TEST(CheckpointReading, SaysThatAFileChangedWhileItWasRead) {
  const std::function<void(const std::string&)> changes[] = {
      [](const std::string& file) { std::filesystem::resize_file(file, 4096); },
      [](const std::string& file) {
        std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
      },
      [](const std::string& file) {
        std::filesystem::resize_file(file, std::filesystem::file_size(file) + 1);
      },
  };
  for (const auto& change : changes) {
    Copy copy("llama3-tiny");
    copy.tensors([](EditableTensors&) {});  // a file of its own
    const std::string file = copy.folder() + "/model.safetensors";
    bool changed = false;
    EngineOptions options{.workers = 2, .max_sequences = 1};
    options.progress = [&](size_t, size_t) {
      if (!std::exchange(changed, true)) change(file);
    };
    std::string message;
    try {
      Engine(open_model(copy.folder()), options);
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_NE(message.find("model.safetensors] the file changed while it was read"), std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace heddle
