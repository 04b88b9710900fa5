#include "heddle/model/hf/adapter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/float16.h"
#include "heddle/base/integer.h"
#include "heddle/base/memory.h"
#include "heddle/base/parallel.h"
#include "heddle/model/hf/tensor_file.h"

namespace heddle {
namespace {

std::string file_in(const std::string& folder) {
  const std::filesystem::path root(folder);
  for (const char* name : {"adapter_model.safetensors", "adapter_model.bin"})
    if (path_exists(root / name)) return root / name;
  fail(ErrorCode::kIo, "[{}] holds no adapter_model.safetensors; copy the whole folder of the adapter",
       folder);
}

// A tensor's place.
struct Name {
  std::string module;
  enum Kind : unsigned char { kA, kB, kCopy } kind = kA;
};

// Reads the names that PEFT saves and those of its modules, which also say an adapter's name:
// "base_model.model.x.lora_A.weight", "x.lora_A.default.weight".
Name parsed(const std::string& file, const std::string& tensor) {
  constexpr std::string_view kAround = "base_model.model.", kEnd = ".weight", kBase = ".base_layer";
  std::string_view name = tensor;
  if (name.starts_with(kAround)) name.remove_prefix(kAround.size());
  const size_t lora = name.find(".lora_");
  if (name.ends_with(kEnd)) {
    const std::string_view module = name.substr(0, name.size() - kEnd.size());
    if (lora == name.npos)
      return {std::string(module.ends_with(kBase) ? module.substr(0, module.size() - kBase.size()) : module),
              Name::kCopy};
    for (const auto& [mark, kind] : {std::pair(".lora_A", Name::kA), {".lora_B", Name::kB}}) {
      const std::string_view rest = module.substr(lora);
      if (!rest.starts_with(mark)) continue;
      const std::string_view adapter = rest.substr(std::string_view(mark).size());
      if (adapter.empty() || (adapter[0] == '.' && adapter.find('.', 1) == adapter.npos))
        return {std::string(name.substr(0, lora)), kind};
    }
  }
  const char* why = name.find("lora_embedding_") != name.npos ? "changes an embedding, which heddle does not"
                    : name.find("lora_magnitude") != name.npos
                        ? "is a part of DoRA, which heddle does not read"
                        : "is no matrix of LoRA";
  fail(ErrorCode::kUnsupported,
       "[{}] tensor {} {}; those of linear layers end with lora_A.weight and lora_B.weight", file,
       brief(tensor), why);
}

template <DType kType>
float load(const std::byte* from, size_t i) {
  if constexpr (kType == DType::kF32) {
    float value;
    std::memcpy(&value, from + 4 * i, sizeof value);
    return value;
  } else {
    uint16_t bits;
    std::memcpy(&bits, from + 2 * i, sizeof bits);
    return kType == DType::kBf16 ? bf16_to_float(bits) : f16_to_float(bits);
  }
}

template <DType kType>
void store(std::byte* to, size_t i, float value) {
  if constexpr (kType == DType::kF32) {
    std::memcpy(to + 4 * i, &value, sizeof value);
  } else {
    const uint16_t bits = kType == DType::kBf16 ? float_to_bf16(value) : float_to_f16(value);
    std::memcpy(to + 2 * i, &bits, sizeof bits);
  }
}

// Calls work with the type as a constant.
void with_type(DType type, const auto& work) {
  switch (type) {
    case DType::kBf16:
      return work.template operator()<DType::kBf16>();
    case DType::kF16:
      return work.template operator()<DType::kF16>();
    default:
      return work.template operator()<DType::kF32>();
  }
}

// A matrix [rows, cols] of a file in f32, or its transpose.
std::vector<float> floats_of(const TensorView& view, bool transposed) {
  const auto rows = size_t(view.shape[0]), cols = size_t(view.shape[1]);
  auto made = make_vector<float>(rows * cols, "a matrix of an adapter");
  with_type(view.dtype, [&]<DType kType>() {
    for (size_t row = 0; row < rows; ++row)
      for (size_t col = 0; col < cols; ++col) {
        const float value = load<kType>(view.data.data(), row * cols + col);
        if (!std::isfinite(value))
          fail(ErrorCode::kIo, "[{}] tensor {} holds {} at [{}, {}]; train or download it again", view.file,
               brief(view.name), value, row, col);
        made[transposed ? col * rows + row : row * cols + col] = value;
      }
  });
  return made;
}

}  // namespace

struct Adapter::Opened {
  std::string folder, text;
};

Adapter::Adapter(const std::string& folder) : Adapter(Opened{folder, adapter_config_text(folder)}) {}

Adapter::Adapter(const Opened& opened)
    : config_(opened.folder, opened.text),
      tensors_(std::make_shared<TensorFile>(file_in(opened.folder)), opened.text) {
  find_products();
}

void Adapter::find_products() {
  struct Pair {
    std::string a, b;
  };
  std::map<std::string, Pair> pairs;
  for (const std::string& tensor : tensors_.names()) {
    const Name name = parsed(file(), tensor);
    std::string& place = name.kind == Name::kCopy ? copies_[name.module]
                         : name.kind == Name::kA  ? pairs[name.module].a
                                                  : pairs[name.module].b;
    if (!place.empty())
      fail(ErrorCode::kIo, "[{}] holds both {} and {}, two of {}; save one of them alone", file(),
           brief(place), brief(tensor), brief(name.module));
    place = tensor;
    (void)tensors_.dtype(tensor);  // floats, or an error
  }
  if (pairs.empty()) fail(ErrorCode::kIo, "[{}] holds no tensors; save the adapter again", file());
  std::vector<std::string> modules;
  for (const auto& [module, pair] : pairs) {
    if (pair.a.empty() || pair.b.empty())
      fail(ErrorCode::kIo, "[{}] has tensor {} without its lora_{}; download the adapter again", file(),
           brief(pair.a.empty() ? pair.b : pair.a), pair.a.empty() ? 'A' : 'B');
    const auto [rank, scale] = config_.rank_and_scale(module);
    products_.push_back({.module = module, .a = pair.a, .b = pair.b, .rank = rank, .scale = scale});
    modules.push_back(module);
  }
  config_.require_chosen(modules, file());
}

void Adapter::require_copy(const std::string& tensor, const TensorView& weight) const {
  const TensorView copy = tensors_.weight(tensor);
  if (copy.dtype == weight.dtype && copy.shape == weight.shape && std::ranges::equal(copy.data, weight.data))
    return;
  fail(ErrorCode::kUnsupported,
       "[{}] tensor {} is {} {} and differs from the base model's {}, {} {}; a weight that was trained or "
       "resized as a whole "
       "is not taken from an adapter",
       file(), brief(tensor), name(copy.dtype), shape_text(copy.shape), brief(weight.name),
       name(weight.dtype), shape_text(weight.shape));
}

void Adapter::require_fit(const Product& product, const std::vector<int64_t>& weight, bool transposed) const {
  require(weight.size() == 2, "[{}] tensor {} belongs to {}, which is {}; only matrices are adapted", file(),
          brief(product.a), brief(product.module), shape_text(weight));
  const std::vector<int64_t> a = {product.rank, weight[transposed ? 0 : 1]},
                             b = {weight[transposed ? 1 : 0], product.rank};
  for (const auto& [tensor, wanted] : {std::pair(product.a, a), std::pair(product.b, b)})
    if (tensors_.shape(tensor) != wanted)
      fail(ErrorCode::kIo,
           "[{}] tensor {} is {}; for rank {} and a weight {} it must be {}: is it another model's adapter?",
           file(), brief(tensor), shape_text(tensors_.shape(tensor)), product.rank, shape_text(weight),
           shape_text(wanted));
}

std::vector<std::byte> Adapter::merged(const Product& product, const TensorView& weight,
                                       bool transposed) const {
  require_fit(product, weight.shape, transposed);
  const auto rows = size_t(weight.shape[0]), cols = size_t(weight.shape[1]), rank = size_t(product.rank);
  // The product as [rows, rank] [rank, cols].
  const std::vector<float> left = floats_of(tensors_.weight(transposed ? product.a : product.b), transposed),
                           right = floats_of(tensors_.weight(transposed ? product.b : product.a), transposed);
  auto made = make_vector<std::byte>(weight.data.size(), "a weight with its adapter");
  constexpr size_t kRows = 64;  // each job has as many
  with_type(weight.dtype, [&]<DType kType>() {
    parallel_for(ceil_div(rows, kRows), 0, [&](size_t job) {
      std::vector<float> sum(cols);
      for (size_t row = job * kRows; row < std::min(rows, (job + 1) * kRows); ++row) {
        std::ranges::fill(sum, 0.0f);
        for (size_t k = 0; k < rank; ++k) {
          const float factor = left[row * rank + k];
          for (size_t col = 0; col < cols; ++col) sum[col] += factor * right[k * cols + col];
        }
        for (size_t col = 0; col < cols; ++col) {
          const size_t at = row * cols + col;
          store<kType>(made.data(), at, load<kType>(weight.data.data(), at) + product.scale * sum[col]);
        }
      }
    });
  });
  return made;
}

}  // namespace heddle
