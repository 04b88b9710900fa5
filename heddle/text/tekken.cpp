#include "heddle/text/tekken.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heddle/base/base64.h"
#include "heddle/text/unicode/byte_level.h"
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
constexpr size_t kMostBytes = 1024;  // a token has at most so many: all of its parts are looked up

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
  std::vector<std::string> sorted = tokens;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    tekken.fail(ErrorCode::kIo, fmt::format("the special token {} is there twice", brief(Json(*twice))));
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
    if (!bytes || bytes->empty() || bytes->size() > kMostBytes)
      text.fail(ErrorCode::kIo, fmt::format("1 to {} bytes in base64 are expected", kMostBytes));
    if (const auto rank = item.find("rank"))
      (void)rank->as_int(int64_t(tokens.size()), int64_t(tokens.size()));
    tokens.push_back(std::move(*bytes));
  });
  if (most && tokens.size() < *most) vocab.fail(ErrorCode::kIo, fmt::format("{} tokens are expected", *most));
  return tokens;
}

using Ranks = std::unordered_map<std::string_view, uint32_t>;

Ranks ranks_of(const std::vector<std::string>& tokens, const JsonView& tekken) {
  Ranks ranks;
  ranks.reserve(tokens.size());
  for (const std::string& token : tokens)
    if (!ranks.emplace(token, uint32_t(ranks.size())).second)
      tekken.fail(ErrorCode::kIo, fmt::format("vocab has the token {} twice", brief(Json(token))));
  for (int byte = 0; byte < 256; ++byte) {
    const char text = char(byte);
    if (!ranks.contains(std::string_view(&text, 1)))
      tekken.fail(ErrorCode::kIo, fmt::format("vocab has no token for the byte {}", byte));
  }
  return ranks;
}

// Each way to make a token of two others, the token of the lowest rank first, and of its parts the lowest first.
Json merges_of(const std::vector<std::string>& tokens, const Ranks& ranks) {
  Json merges = Json::array();
  std::vector<std::pair<uint32_t, uint32_t>> parts;
  for (const std::string_view token : tokens) {
    parts.clear();
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ranks.find(token.substr(0, cut));
      if (left == ranks.end()) continue;
      const auto right = ranks.find(token.substr(cut));
      if (right != ranks.end()) parts.emplace_back(left->second, right->second);
    }
    std::ranges::sort(parts);
    for (const auto& [left, right] : parts)
      merges.push_back(byte_level_encode(tokens[left]) + " " + byte_level_encode(tokens[right]));
  }
  return merges;
}

}  // namespace

Json tokenizer_of_tekken(const JsonView& tekken) {
  const JsonView config = tekken.at("config"), pattern = config.at("pattern");
  const std::vector<std::string> special = read_special(tekken), tokens = read_tokens(tekken, special.size());
  const Ranks ranks = ranks_of(tokens, tekken);
  std::map<std::string, int64_t> vocab;
  Json added = Json::array();
  for (size_t rank = 0; rank < tokens.size(); ++rank)
    vocab[byte_level_encode(tokens[rank])] = int64_t(special.size() + rank);
  for (size_t id = 0; id < special.size(); ++id) {
    vocab[special[id]] = int64_t(id);
    added.push_back(Json::object({{"id", id},
                                  {"content", special[id]},
                                  {"single_word", false},
                                  {"lstrip", false},
                                  {"rstrip", false},
                                  {"normalized", false},
                                  {"special", true}}));
  }
  const Json bytes = Json::object(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
  const Json cut = Json::object({{"type", "Split"},
                                 {"pattern", Json::object({{"Regex", pattern.as_string()}})},
                                 {"behavior", "Isolated"},
                                 {"invert", false}});
  return Json::object(
      {{"version", "1.0"},
       {"added_tokens", added},
       {"pre_tokenizer", Json::object({{"type", "Sequence"}, {"pretokenizers", Json::array({cut, bytes})}})},
       {"decoder", bytes},
       {"model", Json::object({{"type", "BPE"},
                               {"ignore_merges", true},
                               {"vocab", Json(vocab)},
                               {"merges", merges_of(tokens, ranks)}})}});
}

}  // namespace heddle
