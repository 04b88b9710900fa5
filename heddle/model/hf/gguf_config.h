// The config.json that a GGUF file's metadata stand for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "heddle/base/gguf.h"

namespace heddle {

class Json;

// An architecture of llama.cpp that is a family of heddle.
struct GgufArchitecture {
  std::string_view name;
  const char* model_type;
  bool turns_heads = false;  // see GgufPart
  bool adds_one = false;     // see GgufPart
  // Names of tensors in a layer that differ from Llama's: the file's, and transformers'.
  std::span<const std::pair<std::string_view, std::string_view>> names = {};
  // Adds the keys that only this architecture has.
  void (*add)(const Gguf& file, Json& config) = nullptr;
};

// Throws Error(kUnsupported) that lists the known ones.
const GgufArchitecture& gguf_architecture(const Gguf& file);

// Its text.
std::string gguf_config(const Gguf& file);

// The value of a key of the file's architecture, such as "llama.block_count". Null if there is none.
const GgufValue* find_own(const Gguf& file, std::string_view key);

}  // namespace heddle
