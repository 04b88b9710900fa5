#include "heddle/text/added_tokens.h"

#include <algorithm>

#include "heddle/text/oniguruma.h"
#include "heddle/text/unicode/regex.h"
#include "heddle/text/unicode/space.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

// Characters of \w in Rust's regex: Oniguruma's word characters inside a class, and the joiners.
bool is_word_char(std::string_view c) {
  static const Regex word(pcre2_from_oniguruma(R"([\w\x{200C}\x{200D}])"));
  Regex::Scratch scratch;
  return word.find(c, 0, scratch).has_value();
}

}  // namespace

TokenMatcher::TokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::ranges::sort(tokens_, {}, &AddedToken::content);
  for (const AddedToken& token : tokens_) begins_[uint8_t(token.content[0])] = true;
}

// Narrows the sorted tokens, byte by byte, to those that match the text.
const AddedToken* TokenMatcher::longest_at(std::string_view text) const {
  const AddedToken* longest = nullptr;
  auto begin = tokens_.begin(), end = tokens_.end();
  for (size_t depth = 0; begin != end; ++depth) {
    if (begin->content.size() == depth) longest = &*begin++;
    if (depth == text.size()) break;
    const auto byte_at = [depth](const AddedToken& token) { return uint8_t(token.content[depth]); };
    const auto same = std::ranges::equal_range(begin, end, uint8_t(text[depth]), {}, byte_at);
    begin = same.begin();
    end = same.end();
  }
  return longest;
}

// As in `tokenizers`: white space that a token takes may reach over the next match, which still counts.
void TokenMatcher::split(std::string_view text, const OnText& on_text, const OnToken& on_token) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const AddedToken* token = begins_[uint8_t(text[at])] ? longest_at(text.substr(at)) : nullptr;
    if (!token) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + token->content.size();
    at = end;
    if (token->is_text) continue;
    if (token->single_word) {
      if (begin > 0 && is_word_char(last_char(text.substr(0, begin)))) continue;
      if (end < text.size() && is_word_char(text.substr(end, first_char(text.substr(end)).size))) continue;
    }
    if (token->lstrip) begin = std::max(trailing_space(text.substr(0, begin)), done);
    if (token->rstrip) end += leading_space(text.substr(end));
    if (done < begin) on_text(text.substr(done, begin - done));
    on_token(token->id);
    done = end;
  }
  if (done < text.size()) on_text(text.substr(done));
}

}  // namespace heddle
