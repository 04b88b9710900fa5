// The tensors of a GGUF file under the names that transformers gives them, and how the file's numbers differ from those there.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "heddle/base/gguf.h"

namespace heddle {

// A tensor of transformers in a tensor of the file.
struct GgufPart {
  Gguf::Place place;
  std::vector<int64_t> shape;
  size_t begin = 0, size = 0;  // bytes of the file's tensor: an expert's part of a stack
  // Rows of each head lie as rotary embeddings pair them, first and second half in turn (0: as transformers has them).
  int64_t turned_heads = 0;
  bool plus_one = false;  // norms of Gemma are stored with 1 added
};

// By the names of transformers. Throws Error(kIo) for a tensor whose shape does not fit. A tensor of no known name keeps its own.
std::map<std::string, GgufPart> gguf_parts(const Gguf& file);

}  // namespace heddle
