// Makes a Tokenizer from a tokenizer.json.
#include <set>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json_view.h"
#include "heddle/text/byte_level.h"
#include "heddle/text/tokenizer.h"

namespace heddle {
namespace {

// Tables are indexed by id, so this limits the size that a file can ask for.
constexpr int64_t kMaxId = (1 << 20) - 1;
constexpr int kMaxDepth = 16;

// Fails unless the member is absent, null, or has `value`, which has no effect.
void expect_off(const JsonView& model, std::string_view key) {
  const auto member = model.find(key);
  if (!member) return;
  if (member->is_string() ? member->as_string().empty() : !member->as_bool()) return;
  member->fail(ErrorCode::kUnsupported, "BPE with this is not supported");
}

}  // namespace

class TokenizerReader {
 public:
  explicit TokenizerReader(const JsonView& root) : root_(root) {}

  Tokenizer read() {
    check_settings();
    if (const auto normalizer = root_.find("normalizer")) normalizer_ = Normalizer(*normalizer);
    const JsonView decoder = root_.at("decoder"), model = root_.at("model");
    decoder_.emplace(decoder);
    PreTokenizer words;
    if (const auto pre_tokenizer = root_.find("pre_tokenizer")) words = PreTokenizer(*pre_tokenizer);
    by_characters_ = !words.ends_in_bytes();
    check_model(model);
    read_vocab(model);
    const std::vector<Bpe::Merge> merges = read_merges(model);
    const Bpe::Options options = read_options(model);
    const size_t model_tokens = id_of_token_.size();
    read_added(model_tokens);
    normalize_added();

    // If words are made of characters, a token is found by its text.
    StringToId known = by_characters_ ? model_tokens_ : std::move(id_of_bytes_);
    Tokenizer made({.normalizer = normalizer_,
                    .words = std::move(words),
                    .bpe = Bpe(std::move(known), merges, options),
                    .decoder = std::move(*decoder_),
                    .added = TokenMatcher(matched(false)),
                    .added_normalized = TokenMatcher(matched(true))});
    if (const auto processor = root_.find("post_processor")) read_processor(*processor, 0);
    if (template_) made.template_ = *template_;
    made.tokens_ = std::move(tokens_);
    made.id_of_token_ = std::move(id_of_token_);
    return made;
  }

 private:
  void check_settings() const;
  void check_model(const JsonView& model) const;
  void read_vocab(const JsonView& model);
  int32_t id_of(const JsonView& where, std::string_view token) const;
  std::vector<Bpe::Merge> read_merges(const JsonView& model) const;
  Bpe::Options read_options(const JsonView& model) const;
  void read_added(size_t model_tokens);
  void add(const JsonView& item, int64_t& next_id);
  void normalize_added();
  std::vector<AddedToken> matched(bool normalized) const;
  void read_processor(const JsonView& processor, int depth);
  void read_template(const JsonView& processor);
  void set_token(int32_t id, const std::string& text);

  const JsonView& root_;
  Normalizer normalizer_;
  std::optional<Decoder> decoder_;
  bool by_characters_ = false;
  std::vector<Tokenizer::Token> tokens_;
  StringToId id_of_token_;
  StringToId id_of_bytes_;
  StringToId model_tokens_;
  std::vector<AddedToken> added_;
  StringToId index_of_added_;  // by content
  std::optional<std::vector<int32_t>> template_;
};

void TokenizerReader::check_settings() const {
  if (const auto version = root_.find("version"); version && version->as_string() != "1.0") {
    version->fail(ErrorCode::kUnsupported, "version 1.0 is supported");
  }
}

void TokenizerReader::check_model(const JsonView& model) const {
  const JsonView type = model.at("type");
  if (type.as_string() != "BPE") type.fail(ErrorCode::kUnsupported, "only BPE is supported");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) expect_off(model, key);
  // Byte-level models know every byte, and other models do not use this fallback.
  if (!by_characters_) expect_off(model, "byte_fallback");
  const auto dropout = model.find("dropout");
  if (dropout && dropout->as_number() != 0) {
    dropout->fail(ErrorCode::kUnsupported, "dropout makes encoding random; null is supported");
  }
}

void TokenizerReader::set_token(int32_t id, const std::string& text) {
  if (size_t(id) >= tokens_.size()) tokens_.resize(size_t(id) + 1);
  tokens_[size_t(id)] = {.text = text, .piece = decoder_->piece_of(text), .exists = true};
}

void TokenizerReader::read_vocab(const JsonView& model) {
  const JsonView vocab = model.at("vocab");
  if (!vocab.is_object()) vocab.fail(ErrorCode::kIo, "an object from token to id is expected");
  id_of_token_.reserve(vocab.size());
  id_of_bytes_.reserve(vocab.size());
  vocab.for_each_member([&](const std::string& token, const JsonView& value) {
    const auto id = int32_t(value.as_int(0, kMaxId));
    if (size_t(id) < tokens_.size() && tokens_[size_t(id)].exists) {
      value.fail(ErrorCode::kIo, fmt::format("'{}' has this id too", tokens_[size_t(id)].text));
    }
    set_token(id, token);
    id_of_token_.emplace(token, id);
    if (by_characters_) return;
    if (auto bytes = byte_level_decode(token)) id_of_bytes_.emplace(std::move(*bytes), id);
  });
  if (by_characters_) model_tokens_ = id_of_token_;
}

int32_t TokenizerReader::id_of(const JsonView& where, std::string_view token) const {
  const auto found = id_of_token_.find(token);
  if (found == id_of_token_.end())
    where.fail(ErrorCode::kIo, fmt::format("'{}' is not in model.vocab", token));
  return found->second;
}

std::vector<Bpe::Merge> TokenizerReader::read_merges(const JsonView& model) const {
  const JsonView list = model.at("merges");
  std::vector<Bpe::Merge> merges;
  std::string both;
  list.for_each_item([&](const JsonView& item) {
    std::string_view left, right;
    if (item.is_string()) {
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
    both.assign(left).append(right);
    merges.push_back({id_of(item, left), id_of(item, right), id_of(item, both)});
  });
  return merges;
}

Bpe::Options TokenizerReader::read_options(const JsonView& model) const {
  Bpe::Options options{.by_characters = by_characters_};
  if (const auto fallback = model.find("byte_fallback")) options.byte_fallback = fallback->as_bool();
  bool all_bytes = !by_characters_ || options.byte_fallback;
  for (int byte = 0; byte < 256; ++byte) {
    all_bytes &= by_characters_ ? id_of_token_.contains(fmt::format("<0x{:02X}>", byte))
                                : id_of_bytes_.contains(std::string(1, char(byte)));
  }
  // If each byte is a token, nothing is unknown; some files name a token here that is not in the vocabulary.
  const auto unknown = model.find("unk_token");
  if (unknown && !all_bytes) options.unknown = id_of(*unknown, unknown->as_string());
  if (const auto fuse = model.find("fuse_unk")) options.fuse_unknown = fuse->as_bool();
  if (const auto ignore = model.find("ignore_merges")) options.ignore_merges = ignore->as_bool();
  return options;
}

// `tokenizers` numbers added tokens that the model lacks itself, from the size of its vocabulary on.
void TokenizerReader::read_added(size_t model_tokens) {
  const auto list = root_.find("added_tokens");
  if (!list) return;
  auto next_id = int64_t(model_tokens);
  list->for_each_item([&](const JsonView& item) { add(item, next_id); });
}

void TokenizerReader::add(const JsonView& item, int64_t& next_id) {
  AddedToken token;
  const JsonView content = item.at("content"), id = item.at("id");
  token.content = content.as_string();
  token.id = int32_t(id.as_int(0, kMaxId));
  const auto flag = [&](std::string_view key) {
    const JsonView value = item.at(key);
    return value.as_bool();
  };
  token.special = flag("special");
  token.single_word = flag("single_word");
  token.lstrip = flag("lstrip");
  token.rstrip = flag("rstrip");
  token.normalized = flag("normalized");
  if (token.content.empty()) return;

  const auto known = id_of_token_.find(token.content);
  const int64_t expected = known == id_of_token_.end() ? next_id++ : known->second;
  if (token.id != expected) {
    id.fail(ErrorCode::kUnsupported,
            fmt::format("'{}' would get id {}: an added token has its id in model.vocab, "
                        "or the next one after it",
                        token.content, expected));
  }
  const bool was_special = size_t(token.id) < tokens_.size() && tokens_[size_t(token.id)].special;
  set_token(token.id, token.content);
  tokens_[size_t(token.id)].special = tokens_[size_t(token.id)].skipped = token.special || was_special;
  id_of_token_.emplace(token.content, token.id);
  const auto [place, is_new] = index_of_added_.try_emplace(token.content, int32_t(added_.size()));
  if (is_new) added_.emplace_back();
  added_[size_t(place->second)] = std::move(token);
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
                 fmt::format("the added token '{}' is nothing, or what another is, once it is normalized",
                             tokens_[size_t(token.id)].text));
    }
    Tokenizer::Token& shown = tokens_[size_t(token.id)];
    shown.piece = decoder_->piece_of(token.content);
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

void TokenizerReader::read_processor(const JsonView& processor, int depth) {
  const JsonView type = processor.at("type");
  if (type.as_string() == "ByteLevel") return;  // it changes offsets only
  if (type.as_string() == "TemplateProcessing") return read_template(processor);
  if (type.as_string() != "Sequence") {
    type.fail(ErrorCode::kUnsupported, "only Sequence, TemplateProcessing and ByteLevel are supported");
  }
  if (depth == kMaxDepth) type.fail(ErrorCode::kUnsupported, "this Sequence is nested too deeply");
  const JsonView list = processor.at("processors");
  list.for_each_item([&](const JsonView& item) { read_processor(item, depth + 1); });
}

void TokenizerReader::read_template(const JsonView& processor) {
  if (template_) processor.fail(ErrorCode::kUnsupported, "a second TemplateProcessing is not supported");
  const JsonView single = processor.at("single"), specials = processor.at("special_tokens");
  std::vector<int32_t>& pieces = template_.emplace();
  single.for_each_item([&](const JsonView& piece) {
    if (const auto sequence = piece.find("Sequence")) {
      const JsonView id = sequence->at("id");
      if (id.as_string() != "A")
        id.fail(ErrorCode::kIo, "the template of a single text has only the sequence A");
      pieces.push_back(Tokenizer::kText);
      return;
    }
    const JsonView special = piece.at("SpecialToken"), id = special.at("id");
    const JsonView entry = specials.at(id.as_string()), ids = entry.at("ids");
    ids.for_each_item([&](const JsonView& value) {
      const auto token = size_t(value.as_int(0, kMaxId));
      if (token >= tokens_.size() || !tokens_[token].exists)
        value.fail(ErrorCode::kIo, "no token has this id");
      pieces.push_back(int32_t(token));
    });
  });
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& name) {
  const JsonDocument document(json, name);
  const JsonView root = document.root();
  return TokenizerReader(root).read();
}

Tokenizer Tokenizer::load(const std::string& path) {
  return parse(read_file(path), path);
}

}  // namespace heddle
