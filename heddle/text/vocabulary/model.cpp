#include "heddle/text/vocabulary/model.h"

#include <utility>

namespace heddle {

void Vocabulary::add(const std::string& token, int32_t id, const JsonView& where) {
  const auto at = size_t(id);
  if (at < exists.size() && exists[at])
    where.fail(ErrorCode::kIo, fmt::format("'{}' has this id too", tokens[at]));
  if (at >= exists.size()) {
    exists.resize(at + 1);
    tokens.resize(at + 1);
  }
  exists[at] = true;
  tokens[at] = token;
  ids.insert_or_assign(token, id);
  ++size;
}

int32_t Vocabulary::id_of(const JsonView& where, std::string_view token) const {
  const auto found = ids.find(token);
  if (found == ids.end()) where.fail(ErrorCode::kIo, fmt::format("'{}' is not in model.vocab", token));
  return found->second;
}

Vocabulary read_vocabulary(const JsonView& vocab) {
  Vocabulary made;
  made.ids.reserve(vocab.size());
  vocab.for_each_member([&](const std::string& token, const JsonView& value) {
    made.add(token, int32_t(value.as_int(0, kMaxTokenId)), value);
  });
  return made;
}

ReadModel read_model(std::string_view type, const JsonView& json, bool after_bytes) {
  constexpr std::pair<std::string_view, ReadModel (*)(const JsonView&, bool)> kKinds[] = {
      {"BPE", read_bpe},
      {"Unigram", read_unigram},
      {"WordPiece", read_word_piece},
      {"WordLevel", read_word_level},
  };
  for (const auto& [name, read] : kKinds) {
    if (name == type) return read(json, after_bytes);
  }
  json.fail(ErrorCode::kUnsupported, fmt::format("a model of type {} is not supported", type));
}

}  // namespace heddle
