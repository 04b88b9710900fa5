#include "heddle/text/tokenizer.h"

#include <mutex>

#include "heddle/base/error.h"
#include "heddle/text/post_processor.h"
#include "heddle/text/token_trie.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {

struct Tokenizer::LazyTrie {
  std::mutex mutex;
  std::shared_ptr<const TokenTrie> made;
};

Tokenizer::Tokenizer(Parts parts)
    : normalizer_(std::move(parts.normalizer)),
      pre_tokenizer_(std::move(parts.words)),
      model_(std::move(parts.model)),
      decoder_(std::move(parts.decoder)),
      added_(std::move(parts.added)),
      added_normalized_(std::move(parts.added_normalized)),
      trie_(std::make_shared<LazyTrie>()) {}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  std::string valid;
  if (!is_valid_utf8(text)) text = valid = to_valid_utf8(text);
  std::vector<int32_t> ids;
  for (int32_t piece : template_) {
    if (piece == kTextPiece) {
      encode_text(text, ids);
    } else if (add_special_tokens) {
      ids.push_back(piece);
    }
  }
  return ids;
}

void Tokenizer::encode_text(std::string_view text, std::vector<int32_t>& out) const {
  PreTokenizer::Scratch scratch;
  const std::unique_ptr<WordEncoder> encoder = model_->encoder(out);
  const PreTokenizer::Sink word = [&](std::string_view text_of_word) { encoder->encode(text_of_word); };
  const TokenMatcher::OnToken token = [&](int32_t id) { out.push_back(id); };
  const auto encode_part = [&](std::string_view part) {
    Normalizer::Run run{scratch.regex};
    const bool is_begin = part.data() == text.data();
    if (!normalizer_.changes_nothing()) part = scratch.made.emplace_back(normalizer_.run(part, run));
    const bool is_first = is_begin && run.keeps_front;
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
  return token ? decoder_.push(token->shown ? *token->shown : token->text, state) : std::string();
}

std::optional<std::string> Tokenizer::token_bytes(int32_t id) const {
  const Token* token = find(id);
  if (!token) return std::string();
  return decoder_.token_bytes(token->shown ? *token->shown : token->text);
}

std::shared_ptr<const TokenTrie> Tokenizer::trie() const {
  const std::lock_guard lock(trie_->mutex);
  if (trie_->made) return trie_->made;
  std::vector<std::string> texts(tokens_.size());
  for (int32_t id = 0; id < id_limit(); ++id) {
    if (is_special(id) || is_skipped(id)) {
      if (const Token* token = find(id)) texts[size_t(id)] = TokenTrie::kSpecial + token->text;
      continue;
    }
    auto bytes = token_bytes(id);
    require(bytes.has_value(),
            "[tokenizer] the text of its tokens depends on those around them, so answers cannot be held to a "
            "form; "
            "those of a tokenizer whose tokens are bytes can");
    texts[size_t(id)] = std::move(*bytes);
  }
  return trie_->made = std::make_shared<const TokenTrie>(std::move(texts));
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
