// Reads the pickles that torch.save writes of a dict of tensors. Nothing is called and no module is imported: only the
// opcodes of plain values are taken, and the few names that tensors need. All else is refused by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heddle {

// A tensor of the dict: elements of a storage.
struct PickledTensor {
  std::string name;
  std::string storage;        // its key
  std::string type;           // its elements', as safetensors names it: "BF16"
  int64_t storage_elems = 0;  // elements of the storage
  int64_t offset = 0;         // where the first element lies
  std::vector<int64_t> shape, strides;
};

// The pickle at the beginning of `bytes`, and how many bytes it has. Messages name it `path`. Throws Error.
struct PickledTensors {
  std::vector<PickledTensor> tensors;  // each name once
  size_t size = 0;
};
PickledTensors read_pickled_tensors(std::span<const std::byte> bytes, const std::string& path);

// A list of texts, as PickledTensors.
struct PickledTexts {
  std::vector<std::string> texts;
  size_t size = 0;
};
PickledTexts read_pickled_texts(std::span<const std::byte> bytes, const std::string& path);

// The bytes of a pickle of plain values, which are not looked at.
size_t skip_pickle(std::span<const std::byte> bytes, const std::string& path);

}  // namespace heddle
