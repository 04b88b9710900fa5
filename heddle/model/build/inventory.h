// Facts about a checkpoint that the building of a model needs. Names are those of the family, not those of the
// file (see hf/stored_names.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heddle/base/dtype.h"
#include "heddle/engine/model.h"

namespace heddle {

struct Inventory {
  std::function<bool(const std::string& tensor)> has;
  std::function<DType(const std::string& tensor)> dtype;
  std::function<std::vector<int64_t>(const std::string& tensor)> shape = [](const std::string&) {
    return std::vector<int64_t>();
  };
  // The code that a tensor is stored in, if any; its dtype is that of the values.
  std::function<StoredCoding(const std::string& tensor)> coding = [](const std::string&) {
    return StoredCoding{};
  };
  // True if two tensors hold the same bytes.
  std::function<bool(const std::string& a, const std::string& b)> same =
      [](const std::string&, const std::string&) { return true; };
  bool mixed = false;  // its matrices are not all of one dtype
  // The head is the embedding, whatever the text model's configuration says: the model around it ties them.
  bool tied_outside = false;
};

// The tensor of an embedding: if it is tied to the head, a file may hold only that.
inline std::string embedding_of(const Inventory& tensors, const std::string& embedding,
                                const std::string& head, bool tied) {
  return tied && !tensors.has(embedding) && tensors.has(head) ? head : embedding;
}

}  // namespace heddle
