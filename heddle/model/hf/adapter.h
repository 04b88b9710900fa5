// A LoRA adapter as PEFT saves it: adapter_config.json, and adapter_model.safetensors with two matrices of low rank for each
// weight that it changes (Hu et al., 2021: "LoRA: Low-Rank Adaptation of Large Language Models").
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "heddle/model/hf/adapter_config.h"
#include "heddle/model/hf/checkpoint.h"

namespace heddle {

class Adapter {
 public:
  // Reads the configuration and the file's header. Throws Error that names the file, and key or tensor, for what is wrong, and
  // for kinds of adapters that are more than such products.
  explicit Adapter(const std::string& folder);

  // The term of a module's weight: scale b a. a: [rank, columns], b: [rows, rank]
  struct Product {
    std::string module;  // as the base model has it: "model.layers.0.self_attn.q_proj"
    std::string a, b;    // tensors
    int64_t rank = 1;
    float scale = 1;
  };
  const std::vector<Product>& products() const { return products_; }
  // Weights of the base that the file has once more, as PEFT saves an embedding or a head: a module, and its tensor.
  const std::map<std::string, std::string>& copies() const { return copies_; }
  // Throws Error unless that tensor has the bytes of the base's weight.
  void require_copy(const std::string& tensor, const TensorView& weight) const;
  // The file with the tensors.
  const std::string& file() const { return tensors_.folder(); }
  const std::vector<std::string>& notes() const { return config_.notes(); }
  // Tells it from others, as Checkpoint::fingerprint() does.
  std::string fingerprint() const { return tensors_.fingerprint(); }

  // Throws Error where a product is none of a weight of this shape; `transposed`: [columns, rows].
  void require_fit(const Product& product, const std::vector<int64_t>& weight, bool transposed) const;
  // The weight plus the product, summed in f32 and rounded once to the weight's type.
  std::vector<std::byte> merged(const Product& product, const TensorView& weight, bool transposed) const;

 private:
  struct Opened;
  explicit Adapter(const Opened& opened);
  void find_products();

  AdapterConfig config_;
  Checkpoint tensors_;
  std::vector<Product> products_;
  std::map<std::string, std::string> copies_;
};

}  // namespace heddle
