// Reads a `model` of type BPE.
#include "heddle/text/unicode/byte_level.h"
#include "heddle/text/vocabulary/bpe.h"

namespace heddle {
namespace {

std::string text_of(const JsonView& json, std::string_view key) {
  const auto member = json.find(key);
  return member ? member->as_string() : std::string();
}

bool is_on(const JsonView& json, std::string_view key) {
  const auto member = json.find(key);
  return member && member->as_bool();
}

// All merges are strings with one space, or all are pairs. The right half loses the prefix that says that it
// goes on.
std::vector<Bpe::Merge> read_merges(const JsonView& list, const Vocabulary& vocabulary, size_t prefix) {
  std::vector<Bpe::Merge> merges;
  merges.reserve(list.size());
  std::string both;
  bool strings = false, pairs = false;
  list.for_each_item([&](const JsonView& item) {
    std::string_view left, right;
    (item.is_string() ? strings : pairs) = true;
    if (strings && pairs) item.fail(ErrorCode::kIo, "either all merges are strings or all are pairs");
    if (strings) {
      const std::string_view text = item.as_string();
      if (text.starts_with("#version")) return;
      const size_t space = text.find(' ');
      if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
        item.fail(ErrorCode::kIo, "two tokens with one space between them are expected");
      }
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else {
      if (!item.is_array() || item.size() != 2) item.fail(ErrorCode::kIo, "two tokens are expected");
      item.for_each_item([&](const JsonView& part) { (left.data() ? right : left) = part.as_string(); });
    }
    if (right.size() < prefix)
      item.fail(ErrorCode::kIo, "the right token is shorter than model.continuing_subword_prefix");
    both.assign(left).append(right.substr(prefix));
    merges.push_back(
        {vocabulary.id_of(item, left), vocabulary.id_of(item, right), vocabulary.id_of(item, both)});
  });
  return merges;
}

// Tokens by the bytes that they spell.
StringToId bytes_of(const Vocabulary& vocabulary) {
  StringToId ids;
  ids.reserve(vocabulary.size);
  for (const auto& [token, id] : vocabulary.ids) {
    if (auto bytes = byte_level_decode(token)) ids.emplace(std::move(*bytes), id);
  }
  return ids;
}

}  // namespace

ReadModel read_bpe(const JsonView& json, bool after_bytes) {
  const JsonView vocab = json.at("vocab"), list = json.at("merges");
  ReadModel made{.vocabulary = read_vocabulary(vocab)};
  if (const auto dropout = json.find("dropout"); dropout && dropout->as_number() != 0)
    dropout->fail(ErrorCode::kUnsupported, "dropout makes encoding random; null is supported");
  Bpe::Options options{.fuse_unknown = is_on(json, "fuse_unk"),
                       .ignore_merges = is_on(json, "ignore_merges"),
                       .byte_fallback = is_on(json, "byte_fallback"),
                       .prefix = text_of(json, "continuing_subword_prefix"),
                       .suffix = text_of(json, "end_of_word_suffix")};
  made.takes_bytes =
      after_bytes && !options.byte_fallback && options.prefix.empty() && options.suffix.empty();
  options.by_characters = !made.takes_bytes;
  const std::vector<Bpe::Merge> merges = read_merges(list, made.vocabulary, options.prefix.size());
  StringToId known = made.takes_bytes ? bytes_of(made.vocabulary) : made.vocabulary.ids;
  if (const auto unknown = json.find("unk_token")) {
    const auto found = made.vocabulary.ids.find(unknown->as_string());
    if (found != made.vocabulary.ids.end())
      options.unknown = found->second;
    else
      options.missing_unknown = unknown->as_string();
  }
  made.model = std::make_unique<const Bpe>(std::move(known), merges, std::move(options));
  return made;
}

}  // namespace heddle
