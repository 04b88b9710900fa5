// A word is one token.
#include "heddle/text/vocabulary/model.h"

namespace heddle {
namespace {

class WordLevel final : public TokenModel {
 public:
  WordLevel(StringToId ids, std::string unknown) : ids_(std::move(ids)), unknown_(std::move(unknown)) {}

  std::unique_ptr<WordEncoder> encoder(std::vector<int32_t>& out) const override {
    return std::make_unique<Encoder>(*this, out);
  }

 private:
  class Encoder final : public WordEncoder {
   public:
    Encoder(const WordLevel& model, std::vector<int32_t>& out) : model_(model), out_(out) {}
    void encode(std::string_view word) override { out_.push_back(model_.id_of(word)); }

   private:
    const WordLevel& model_;
    std::vector<int32_t>& out_;
  };

  int32_t id_of(std::string_view word) const {
    auto found = ids_.find(word);
    if (found == ids_.end()) found = ids_.find(unknown_);
    if (found != ids_.end()) return found->second;
    fail(ErrorCode::kUnsupported,
         "[tokenizer] '{}' is not in the vocabulary, and neither is its unk_token '{}'; a tokenizer that "
         "encodes any text has it",
         word, unknown_);
  }

  StringToId ids_;
  std::string unknown_;
};

}  // namespace

ReadModel read_word_level(const JsonView& json, bool) {
  const JsonView vocab = json.at("vocab"), unknown = json.at("unk_token");
  ReadModel made{.vocabulary = read_vocabulary(vocab)};
  made.model = std::make_unique<const WordLevel>(made.vocabulary.ids, unknown.as_string());
  return made;
}

}  // namespace heddle
