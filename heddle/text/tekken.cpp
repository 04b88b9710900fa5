#include "heddle/text/tekken.h"

#include <optional>
#include <utility>
#include <vector>

#include "heddle/base/base64.h"
#include "heddle/text/ranked_vocabulary.h"
#include "heddle/text/vocabulary/model.h"

namespace heddle {
namespace {

// A file that lists none has these.
constexpr const char* kOldSpecial[] = {"<unk>",
                                       "<s>",
                                       "</s>",
                                       "[INST]",
                                       "[/INST]",
                                       "[AVAILABLE_TOOLS]",
                                       "[/AVAILABLE_TOOLS]",
                                       "[TOOL_RESULTS]",
                                       "[/TOOL_RESULTS]",
                                       "[TOOL_CALLS]",
                                       "[IMG]",
                                       "<pad>",
                                       "[IMG_BREAK]",
                                       "[IMG_END]",
                                       "[PREFIX]",
                                       "[MIDDLE]",
                                       "[SUFFIX]",
                                       "[SYSTEM_PROMPT]",
                                       "[/SYSTEM_PROMPT]",
                                       "[TOOL_CONTENT]"};

// By id. Ids that the file names no token for have tokens too.
std::vector<std::string> read_special(const JsonView& tekken) {
  std::vector<std::string> tokens;
  if (const auto list = tekken.find("special_tokens")) {
    tokens.resize(list->size());
    list->for_each_item([&](const JsonView& item) {
      const JsonView text = item.at("token_str"), rank = item.at("rank");
      std::string& token = tokens[size_t(rank.as_int(0, int64_t(tokens.size()) - 1))];
      if (!token.empty()) rank.fail(ErrorCode::kIo, "each special token has a rank of its own");
      token = text.as_string();
      if (token.empty()) text.fail(ErrorCode::kIo, "a token is expected");
    });
  } else {
    tokens.assign(std::begin(kOldSpecial), std::end(kOldSpecial));
  }
  const JsonView config = tekken.at("config");
  if (const auto count = config.find("default_num_special_tokens"))
    for (const int64_t all = count->as_int(int64_t(tokens.size()), kMaxTokenId);
         int64_t(tokens.size()) < all;)
      tokens.push_back(fmt::format("<SPECIAL_{}>", tokens.size()));
  return tokens;
}

// Byte strings by rank. A file may list more than the model has.
std::vector<std::string> read_tokens(const JsonView& tekken, size_t num_special) {
  const JsonView vocab = tekken.at("vocab"), config = tekken.at("config");
  std::optional<size_t> most;
  if (const auto size = config.find("default_vocab_size"))
    most = size_t(size->as_int(int64_t(num_special), kMaxTokenId)) - num_special;
  std::vector<std::string> tokens;
  vocab.for_each_item([&](const JsonView& item) {
    if (most && tokens.size() >= *most) return;
    const JsonView text = item.at("token_bytes");
    std::optional<std::string> bytes = from_base64(text.as_string());
    if (!bytes || bytes->empty() || bytes->size() > kMostRankedBytes)
      text.fail(ErrorCode::kIo, fmt::format("1 to {} bytes in base64 are expected", kMostRankedBytes));
    if (const auto rank = item.find("rank"))
      (void)rank->as_int(int64_t(tokens.size()), int64_t(tokens.size()));
    tokens.push_back(std::move(*bytes));
  });
  if (most && tokens.size() < *most) vocab.fail(ErrorCode::kIo, fmt::format("{} tokens are expected", *most));
  return tokens;
}

}  // namespace

Json tokenizer_of_tekken(const JsonView& tekken) {
  const JsonView config = tekken.at("config"), pattern = config.at("pattern");
  RankedVocabulary vocabulary{.pattern = pattern.as_string()};
  const std::vector<std::string> special = read_special(tekken);
  for (const std::string& token : special)
    vocabulary.special.emplace(int64_t(vocabulary.special.size()),
                               AddedToken{.content = token, .special = true});
  vocabulary.first_id = int64_t(special.size());
  vocabulary.tokens = read_tokens(tekken, special.size());
  return tokenizer_of(vocabulary, [&](const std::string& reason) { tekken.fail(ErrorCode::kIo, reason); });
}

}  // namespace heddle
