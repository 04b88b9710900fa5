// The `precompiled_charsmap` of SentencePiece: a double array of texts, with what each is replaced by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

class CharMap {
 public:
  // `bytes`: the size of the array in bytes, the array, and the replacements, each followed by a zero byte.
  // Throws Error(kIo) when it is too short or the replacements are not UTF-8.
  explicit CharMap(std::string_view bytes);

  // `text` is valid UTF-8, and so is the result. Works on grapheme clusters, as `tokenizers` does. Throws
  // Error(kIo) when the array leads out of itself.
  std::string run(std::string_view text) const;

 private:
  uint32_t unit(size_t at) const;
  std::optional<std::string_view> find(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace heddle
