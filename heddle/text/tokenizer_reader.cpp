// Makes a Tokenizer from a tokenizer.json.
#include <algorithm>
#include <set>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/gguf.h"
#include "heddle/base/json_view.h"
#include "heddle/base/memory.h"
#include "heddle/text/post_processor.h"
#include "heddle/text/tokenizer.h"
#include "heddle/text/tokenizer_files.h"
#include "heddle/text/tokenizer_keys.h"

namespace heddle {
class TokenizerReader {
 public:
  explicit TokenizerReader(const JsonView& root) : root_(root) {}

  struct Changes {
    std::vector<AddedToken> more;        // tokens to add after those of the file
    std::optional<TokensAround> around;  // instead of a post-processor
    bool splits_special = false;         // special tokens in a text are text
  };
  Tokenizer read(Changes changes) {
    check_top(root_);
    if (const auto version = root_.find("version"); version && version->as_string() != "1.0")
      version->fail(ErrorCode::kUnsupported, "version 1.0 is supported");
    if (const auto normalizer = root_.find("normalizer")) normalizer_ = Normalizer(*normalizer);
    PreTokenizer words;
    if (const auto pre_tokenizer = root_.find("pre_tokenizer")) words = PreTokenizer(*pre_tokenizer);
    ReadModel read = read_words(words);
    const auto decoder = root_.find("decoder");
    model_tokens_ = int64_t(read.vocabulary.size);
    read_added();
    for (AddedToken& token : changes.more) {
      token.id = int32_t(id_for(token.content));
      add(std::move(token));
    }
    normalize_added();
    if (changes.splits_special)
      for (AddedToken& token : added_) token.is_text = tokens_[size_t(token.id)].special;

    Tokenizer made({.normalizer = normalizer_,
                    .words = std::move(words),
                    .model = std::move(read.model),
                    .decoder = decoder ? Decoder(*decoder) : Decoder(),
                    .added = TokenMatcher(matched(false)),
                    .added_normalized = TokenMatcher(matched(true))});
    const auto is_token = [&](int64_t id) {
      return size_t(id) < tokens_.size() && tokens_[size_t(id)].exists;
    };
    const auto processor = root_.find("post_processor");
    made.template_ = processor ? read_post_processor(*processor, is_token) : std::vector{kTextPiece};
    if (changes.around) put_around(*changes.around, made.template_);
    made.tokens_ = std::move(tokens_);
    made.id_of_token_ = std::move(id_of_token_);
    return made;
  }

 private:
  ReadModel read_words(PreTokenizer& words);
  void read_added();
  AddedToken read_added_token(const JsonView& item) const;
  int64_t id_for(const std::string& content) const;
  void add(AddedToken token);
  void put_around(const TokensAround& around, std::vector<int32_t>& pieces) const;
  void normalize_added();
  std::vector<AddedToken> matched(bool normalized) const;
  void set_token(int32_t id, const std::string& text);

  const JsonView& root_;
  Normalizer normalizer_;
  std::vector<Tokenizer::Token> tokens_;
  StringToId id_of_token_;
  std::vector<AddedToken> added_;
  StringToId index_of_added_;  // by content
  int64_t model_tokens_ = 0, next_added_ = 0;
};

// Reads the model, and lets `words` spell its words if the model takes no bytes.
ReadModel TokenizerReader::read_words(PreTokenizer& words) {
  const JsonView model = root_.at("model");
  ReadModel read = read_model(checked_type(Section::kModel, model), model, words.ends_in_bytes());
  if (words.ends_in_bytes() && !read.takes_bytes) words.spell_words();
  tokens_.resize(read.vocabulary.tokens.size());
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (read.vocabulary.exists[id])
      tokens_[id] = {.text = std::move(read.vocabulary.tokens[id]), .exists = true};
  }
  id_of_token_ = std::move(read.vocabulary.ids);
  return read;
}

void TokenizerReader::set_token(int32_t id, const std::string& text) {
  if (size_t(id) >= tokens_.size()) tokens_.resize(size_t(id) + 1);
  tokens_[size_t(id)] = {.text = text, .exists = true};
}

void TokenizerReader::read_added() {
  const auto list = root_.find("added_tokens");
  if (!list) return;
  list->for_each_item([&](const JsonView& item) {
    AddedToken token = read_added_token(item);
    if (token.content.empty()) return;
    const int64_t expected = id_for(token.content);
    if (token.id != expected) {
      const JsonView id = item.at("id");
      id.fail(ErrorCode::kUnsupported,
              fmt::format("'{}' would get id {}: an added token has its id in model.vocab, "
                          "or the next one after it",
                          token.content, expected));
    }
    add(std::move(token));
  });
}

AddedToken TokenizerReader::read_added_token(const JsonView& item) const {
  check_added_token(item);
  AddedToken token;
  const JsonView content = item.at("content"), id = item.at("id");
  token.content = content.as_string();
  token.id = int32_t(id.as_int(0, kMaxTokenId));
  const auto flag = [&](std::string_view key) {
    const JsonView value = item.at(key);
    return value.as_bool();
  };
  token.special = flag("special");
  token.single_word = flag("single_word");
  token.lstrip = flag("lstrip");
  token.rstrip = flag("rstrip");
  token.normalized = flag("normalized");
  return token;
}

// `tokenizers` numbers added tokens that the model lacks itself, from the size of its vocabulary on, and after the
// added tokens before.
int64_t TokenizerReader::id_for(const std::string& content) const {
  const auto known = id_of_token_.find(content);
  return known == id_of_token_.end() ? std::max(model_tokens_, next_added_) : known->second;
}

void TokenizerReader::add(AddedToken token) {
  if (token.content.empty()) return;
  require(token.id <= kMaxTokenId, "[tokenizer] '{}' would be token {}; {} is the last one", token.content,
          token.id, kMaxTokenId);
  next_added_ = std::max(next_added_, int64_t{token.id} + 1);
  const bool was_special = size_t(token.id) < tokens_.size() && tokens_[size_t(token.id)].special;
  set_token(token.id, token.content);
  tokens_[size_t(token.id)].special = tokens_[size_t(token.id)].skipped = token.special || was_special;
  id_of_token_.emplace(token.content, token.id);
  const auto [place, is_new] = index_of_added_.try_emplace(token.content, int32_t(added_.size()));
  if (is_new) added_.emplace_back();
  added_[size_t(place->second)] = std::move(token);
}

void TokenizerReader::put_around(const TokensAround& around, std::vector<int32_t>& pieces) const {
  pieces.clear();
  const auto put = [&](const std::string& token) { pieces.push_back(int32_t(id_for(token))); };
  std::ranges::for_each(around.before, put);
  pieces.push_back(kTextPiece);
  std::ranges::for_each(around.after, put);
}

// Tokens that are matched in normalized text are normalized too, and `tokenizers` decodes them so. A special
// one may then no longer be recognised as special.
void TokenizerReader::normalize_added() {
  Regex::Scratch scratch;
  std::set<std::string> contents;
  for (AddedToken& token : added_) {
    if (!token.normalized || normalizer_.changes_nothing()) continue;
    token.content = normalizer_.run(token.content, scratch);
    if (token.content.empty() || !contents.insert(token.content).second) {
      root_.fail(ErrorCode::kUnsupported,
                 fmt::format("normalization makes the added token '{}' empty or equal to another one",
                             tokens_[size_t(token.id)].text));
    }
    Tokenizer::Token& shown = tokens_[size_t(token.id)];
    shown.shown = token.content;
    const auto known = index_of_added_.find(token.content);
    shown.skipped =
        known != index_of_added_.end() && tokens_[size_t(added_[size_t(known->second)].id)].special;
  }
}

std::vector<AddedToken> TokenizerReader::matched(bool normalized) const {
  std::vector<AddedToken> tokens;
  for (const AddedToken& token : added_) {
    if (token.normalized == normalized) tokens.push_back(token);
  }
  return tokens;
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& name) {
  const JsonDocument document(json, name);
  const JsonView root = document.root();
  return TokenizerReader(root).read({});
}

Tokenizer Tokenizer::load(const std::string& path) {
  return with_memory_for("the tokenizer", [&] {
    if (!is_folder(path) && !is_gguf(path)) return parse(read_file(path), path);
    TokenizerFiles files(path);
    TokenizerReader::Changes changes = {.more = files.added_tokens(),
                                        .around = files.around(),
                                        .splits_special = files.splits_special_tokens()};
    const std::string name = files.source().empty() ? path : path + "/" + files.source();
    const Json json = std::move(files).tokenizer();
    const JsonView root(json, name);
    return TokenizerReader(root).read(std::move(changes));
  });
}

}  // namespace heddle
