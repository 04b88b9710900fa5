#include "heddle/text/tokenizer.h"

#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

// Encodes each distinct word once. For a word that it has seen, it copies the tokens from the output.
class WordEncoder {
 public:
  WordEncoder(const Bpe& bpe, std::vector<int32_t>& out) : bpe_(bpe), out_(out) {}

  void operator()(std::string_view word) {
    bpe_.split(word, [this](std::string_view part) { encode(part); });
  }

 private:
  void encode(std::string_view word) {
    const auto [found, is_new] = seen_.try_emplace(word, Tokens{out_.size(), 0});
    Tokens& tokens = found->second;
    if (is_new) {
      bpe_.encode(word, scratch_, out_);
      tokens.count = out_.size() - tokens.begin;
    } else {
      for (size_t i = 0; i < tokens.count; ++i) out_.push_back(out_[tokens.begin + i]);
    }
  }

  struct Tokens {
    size_t begin, count;
  };
  const Bpe& bpe_;
  std::vector<int32_t>& out_;
  Bpe::Scratch scratch_;
  std::unordered_map<std::string_view, Tokens> seen_;
};

}  // namespace

Tokenizer::Tokenizer(Parts parts)
    : normalizer_(std::move(parts.normalizer)),
      pre_tokenizer_(std::move(parts.words)),
      bpe_(std::move(parts.bpe)),
      decoder_(std::move(parts.decoder)),
      added_(std::move(parts.added)),
      added_normalized_(std::move(parts.added_normalized)) {}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  std::string valid;
  if (!is_valid_utf8(text)) text = valid = to_valid_utf8(text);
  std::vector<int32_t> ids;
  for (int32_t piece : template_) {
    if (piece == kText) {
      encode_text(text, ids);
    } else if (add_special_tokens) {
      ids.push_back(piece);
    }
  }
  return ids;
}

void Tokenizer::encode_text(std::string_view text, std::vector<int32_t>& out) const {
  PreTokenizer::Scratch scratch;
  WordEncoder encode_word(bpe_, out);
  const PreTokenizer::Sink word = std::ref(encode_word);
  const TokenMatcher::OnToken token = [&](int32_t id) { out.push_back(id); };
  const auto encode_part = [&](std::string_view part) {
    const bool is_first = part.data() == text.data();
    if (!normalizer_.changes_nothing())
      part = scratch.made.emplace_back(normalizer_.run(part, scratch.regex));
    const TokenMatcher::OnText words = [&](std::string_view rest) {
      pre_tokenizer_.run(rest, is_first && rest.data() == part.data(), scratch, word);
    };
    added_normalized_.split(part, words, token);
  };
  added_.split(text, encode_part, token);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string text;
  Decoder::State state;
  for (int32_t id : ids) {
    if (!(skip_special && is_skipped(id))) text += decode_next(id, state);
  }
  return text + decode_end(state);
}

std::string Tokenizer::decode_next(int32_t id, Decoder::State& state) const {
  const Token* token = find(id);
  return token ? decoder_.push(token->piece, state) : std::string();
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  const auto found = id_of_token_.find(token);
  return found == id_of_token_.end() ? std::nullopt : std::optional(found->second);
}

const Tokenizer::Token* Tokenizer::find(int32_t id) const {
  const bool inside = id >= 0 && size_t(id) < tokens_.size() && tokens_[size_t(id)].exists;
  return inside ? &tokens_[size_t(id)] : nullptr;
}

std::optional<std::string_view> Tokenizer::id_to_token(int32_t id) const {
  const Token* token = find(id);
  return token ? std::optional<std::string_view>(token->text) : std::nullopt;
}

bool Tokenizer::is_special(int32_t id) const {
  const Token* token = find(id);
  return token && token->special;
}

bool Tokenizer::is_skipped(int32_t id) const {
  const Token* token = find(id);
  return token && token->skipped;
}

}  // namespace heddle
