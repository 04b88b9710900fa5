#include "heddle/text/ranked_vocabulary.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/json.h"
#include "heddle/text/unicode/byte_level.h"

namespace heddle {
namespace {

using Refuse = std::function<void(const std::string&)>;
using Ranks = std::unordered_map<std::string_view, uint32_t>;

Ranks ranks_of(const std::vector<std::string>& tokens, const Refuse& refuse) {
  Ranks ranks;
  ranks.reserve(tokens.size());
  for (const std::string& token : tokens)
    if (!ranks.emplace(token, uint32_t(ranks.size())).second)
      refuse(fmt::format("the vocabulary has the token {} twice", brief(Json(byte_level_encode(token)))));
  for (int byte = 0; byte < 256; ++byte) {
    const char text = char(byte);
    if (!ranks.contains(std::string_view(&text, 1)))
      refuse(fmt::format("the vocabulary has no token for the byte {}", byte));
  }
  return ranks;
}

void require_distinct(const std::map<int64_t, AddedToken>& special, const Refuse& refuse) {
  std::vector<std::string_view> sorted;
  for (const auto& [id, token] : special) sorted.push_back(token.content);
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    refuse(fmt::format("the special token {} is there twice", brief(Json(std::string(*twice)))));
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

Json tokenizer_of(const RankedVocabulary& vocabulary, const Refuse& refuse) {
  require_distinct(vocabulary.special, refuse);
  const Ranks ranks = ranks_of(vocabulary.tokens, refuse);
  std::map<std::string, int64_t> vocab;
  Json added = Json::array();
  for (size_t rank = 0; rank < vocabulary.tokens.size(); ++rank)
    vocab[byte_level_encode(vocabulary.tokens[rank])] = vocabulary.first_id + int64_t(rank);
  for (const auto& [id, token] : vocabulary.special) {
    vocab[token.content] = id;
    added.push_back(Json::object({{"id", id},
                                  {"content", token.content},
                                  {"single_word", false},
                                  {"lstrip", false},
                                  {"rstrip", false},
                                  {"normalized", false},
                                  {"special", token.special}}));
  }
  const Json bytes = Json::object(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
  const Json cut = Json::object({{"type", "Split"},
                                 {"pattern", Json::object({{"Regex", vocabulary.pattern}})},
                                 {"behavior", "Isolated"},
                                 {"invert", false}});
  return Json::object(
      {{"version", "1.0"},
       {"added_tokens", added},
       {"normalizer", vocabulary.nfc ? Json::object({{"type", "NFC"}}) : Json()},
       {"pre_tokenizer", Json::object({{"type", "Sequence"}, {"pretokenizers", Json::array({cut, bytes})}})},
       {"decoder", bytes},
       {"model", Json::object({{"type", "BPE"},
                               {"ignore_merges", true},
                               {"vocab", Json(vocab)},
                               {"merges", merges_of(vocabulary.tokens, ranks)}})}});
}

}  // namespace heddle
