// BERT's model: the longest token that begins a word, then the longest that goes on, and so forth. Tokens that go
// on have a prefix, such as ##. A word with a part that no token fits is unknown as a whole.
#include <algorithm>

#include "heddle/text/unicode/space.h"
#include "heddle/text/unicode/utf8.h"
#include "heddle/text/vocabulary/caching_encoder.h"

namespace heddle {
namespace {

class WordPiece final : public TokenModel {
 public:
  struct Scratch {
    std::string token;
  };
  struct Settings {
    std::string unknown, prefix;
    size_t most_characters = 0;  // a longer word is unknown
  };

  WordPiece(StringToId ids, Settings settings) : ids_(std::move(ids)), settings_(std::move(settings)) {
    for (const auto& [token, id] : ids_) longest_ = std::max(longest_, token.size());
  }

  std::unique_ptr<WordEncoder> encoder(std::vector<int32_t>& out) const override {
    return std::make_unique<CachingEncoder<WordPiece>>(*this, out);
  }

  template <class Part>
  void split(std::string_view word, Part&& part) const {
    part(word);
  }

  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& out) const {
    const size_t before = out.size();
    bool known = count_characters(word) <= settings_.most_characters;
    for (size_t begin = 0; known && begin < word.size();) {
      const auto [size, id] = longest_at(word, begin, scratch);
      known = size > 0;
      begin += size;
      if (known) out.push_back(id);
    }
    if (known) return;
    out.resize(before);
    out.push_back(unknown_id(word));
  }

 private:
  struct Match {
    size_t size;
    int32_t id;
  };
  Match longest_at(std::string_view word, size_t begin, Scratch& scratch) const {
    std::string_view rest = word.substr(begin, longest_);
    while (!rest.empty() && !is_valid_utf8(rest.substr(rest.size() - last_char(rest).size())))
      rest.remove_suffix(1);  // longest_ cut a character
    scratch.token = begin > 0 ? settings_.prefix : "";
    const size_t prefix = scratch.token.size();
    scratch.token += rest;
    while (scratch.token.size() > prefix) {
      if (const auto found = ids_.find(scratch.token); found != ids_.end())
        return {scratch.token.size() - prefix, found->second};
      scratch.token.resize(scratch.token.size() - last_char(scratch.token).size());
    }
    return {0, 0};
  }

  int32_t unknown_id(std::string_view word) const {
    const auto found = ids_.find(settings_.unknown);
    if (found != ids_.end()) return found->second;
    fail(ErrorCode::kUnsupported,
         "[tokenizer] no tokens spell '{}', and unk_token '{}' is not in the vocabulary; a tokenizer that "
         "encodes any text has it",
         word, settings_.unknown);
  }

  StringToId ids_;
  Settings settings_;
  size_t longest_ = 0;  // bytes
};

}  // namespace

ReadModel read_word_piece(const JsonView& json, bool) {
  const JsonView vocab = json.at("vocab"), unknown = json.at("unk_token"),
                 prefix = json.at("continuing_subword_prefix"), most = json.at("max_input_chars_per_word");
  ReadModel made{.vocabulary = read_vocabulary(vocab)};
  made.model = std::make_unique<const WordPiece>(
      made.vocabulary.ids, WordPiece::Settings{.unknown = unknown.as_string(),
                                               .prefix = prefix.as_string(),
                                               .most_characters = size_t(most.as_int(0, INT64_MAX))});
  return made;
}

}  // namespace heddle
