// Encodes each distinct word once. For a word that it has seen, it copies the tokens from the output.
#pragma once

#include <unordered_map>

#include "heddle/text/vocabulary/model.h"

namespace heddle {

// Kind has a `Scratch`, split(word, part), which calls `part` for parts that can be encoded separately, and
// encode(part, scratch, out), which appends the tokens of a part.
template <class Kind>
class CachingEncoder final : public WordEncoder {
 public:
  CachingEncoder(const Kind& kind, std::vector<int32_t>& out) : kind_(kind), out_(out) {}

  void encode(std::string_view word) override {
    kind_.split(word, [this](std::string_view part) { encode_part(part); });
  }

 private:
  void encode_part(std::string_view part) {
    const auto [found, is_new] = seen_.try_emplace(part, Tokens{out_.size(), 0});
    Tokens& tokens = found->second;
    if (is_new) {
      kind_.encode(part, scratch_, out_);
      tokens.count = out_.size() - tokens.begin;
    } else {
      for (size_t i = 0; i < tokens.count; ++i) out_.push_back(out_[tokens.begin + i]);
    }
  }

  struct Tokens {
    size_t begin, count;
  };
  const Kind& kind_;
  std::vector<int32_t>& out_;
  typename Kind::Scratch scratch_;
  std::unordered_map<std::string_view, Tokens> seen_;
};

}  // namespace heddle
