#include "tests/support/told_model.h"

#include <cstring>
#include <utility>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

EditableTensor tensor_of(std::vector<int64_t> shape, const std::vector<float>& values) {
  EditableTensor made{DType::kF32, std::move(shape), std::vector<std::byte>(values.size() * sizeof(float))};
  std::memcpy(made.data.data(), values.data(), made.data.size());
  return made;
}

EditableTensor filled(std::vector<int64_t> shape, float value) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return tensor_of(std::move(shape), std::vector<float>(size_t(count), value));
}

}  // namespace

// The embedding of a position is its row of the identity, and all layers are zero: a column of the head says what follows.
void write_told_model(const std::string& folder, i32 vocab, i32 eos, const std::map<i32, i32>& told) {
  const int64_t n = kToldPositions;
  EditableTensors tensors;
  std::vector<float> identity(size_t(n * n)), head(size_t(vocab) * size_t(n));
  for (size_t i = 0; i < size_t(n); ++i) identity[i * size_t(n) + i] = 1;
  for (const auto& [position, token] : told) head[size_t(token) * size_t(n) + size_t(position)] = 1;
  tensors["transformer.wte.weight"] = filled({vocab, n}, 0);
  tensors["transformer.wpe.weight"] = tensor_of({n, n}, identity);
  tensors["lm_head.weight"] = tensor_of({vocab, n}, head);
  for (const std::string norm : {"h.0.ln_1", "h.0.ln_2", "ln_f"}) {
    tensors["transformer." + norm + ".weight"] = filled({n}, 1);
    tensors["transformer." + norm + ".bias"] = filled({n}, 0);
  }
  const std::pair<const char*, std::pair<int64_t, int64_t>> matrices[] = {{"attn.c_attn", {n, 3 * n}},
                                                                          {"attn.c_proj", {n, n}},
                                                                          {"mlp.c_fc", {n, 4 * n}},
                                                                          {"mlp.c_proj", {4 * n, n}}};
  for (const auto& [name, shape] : matrices) {
    tensors["transformer.h.0." + std::string(name) + ".weight"] = filled({shape.first, shape.second}, 0);
    tensors["transformer.h.0." + std::string(name) + ".bias"] = filled({shape.second}, 0);
  }
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors)
    views.push_back({.name = name, .dtype = tensor.dtype, .shape = tensor.shape, .data = tensor.data});
  write_safetensors(folder + "/model.safetensors", std::move(views));
  write_file(folder + "/config.json", Json::object({{"model_type", "gpt2"},
                                                    {"vocab_size", vocab},
                                                    {"n_embd", n},
                                                    {"n_positions", n},
                                                    {"n_layer", 1},
                                                    {"n_head", 1},
                                                    {"tie_word_embeddings", false},
                                                    {"eos_token_id", eos}})
                                          .dump());
}

void write_told_tokenizer(const std::string& folder, const std::vector<ToldWord>& words) {
  Json added = Json::array();
  for (size_t i = 0; i < words.size(); ++i)
    added.push_back(Json::object({{"id", i + 1},
                                  {"content", words[i].text},
                                  {"single_word", false},
                                  {"lstrip", false},
                                  {"rstrip", false},
                                  {"normalized", false},
                                  {"special", words[i].special}}));
  const Json model =
      Json::object({{"type", "WordLevel"}, {"vocab", Json::object({{"?", 0}})}, {"unk_token", "?"}});
  write_file(folder + "/tokenizer.json", Json::object({{"version", "1.0"},
                                                       {"added_tokens", added},
                                                       {"decoder", Json::object({{"type", "Fuse"}})},
                                                       {"model", model}})
                                             .dump());
  write_file(folder + "/tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
}

}  // namespace heddle
