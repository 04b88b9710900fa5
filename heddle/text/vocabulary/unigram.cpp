// SentencePiece's Unigram model: of all ways to cut a word into tokens, the one with the highest sum of scores
// (Kudo 2018). Viterbi's algorithm finds it in one pass over the characters.
#include <algorithm>
#include <limits>
#include <optional>

#include "heddle/text/unicode/utf8.h"
#include "heddle/text/vocabulary/byte_trie.h"
#include "heddle/text/vocabulary/caching_encoder.h"

namespace heddle {
namespace {

constexpr double kUnknownPenalty = 10;  // an unknown character scores this much less than the worst token

class Unigram final : public TokenModel {
 public:
  struct Node {
    double score = 0;  // the best cut of the text before this byte has it
    size_t begin = 0;  // where the last token of that cut begins
    int32_t id = 0;
    bool reached = false;
  };
  struct Piece {
    size_t begin, end;
  };
  struct Scratch {
    std::vector<Node> nodes;
    std::vector<Piece> pieces;
  };
  struct Settings {
    std::vector<double> scores;
    std::optional<int32_t> unknown;
    bool byte_fallback = false;
  };

  Unigram(const Vocabulary& vocabulary, Settings settings)
      : ids_(vocabulary.ids), settings_(std::move(settings)), trie_(bytes_of(vocabulary.ids)) {
    for (const auto& [token, id] : ids_) {
      if (!token.empty()) trie_.add(token, id);
    }
    const auto lowest = std::ranges::min_element(settings_.scores);
    unknown_score_ = (lowest == settings_.scores.end() ? 0 : *lowest) - kUnknownPenalty;
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = ids_.find(fmt::format("<0x{:02X}>", byte));
      if (settings_.byte_fallback && found != ids_.end()) fallback_[byte] = found->second;
    }
  }

  std::unique_ptr<WordEncoder> encoder(std::vector<int32_t>& out) const override {
    return std::make_unique<CachingEncoder<Unigram>>(*this, out);
  }

  template <class Part>
  void split(std::string_view word, Part&& part) const {
    part(word);
  }

  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& out) const {
    find_best(word, scratch);
    trace_back(word.size(), scratch);
    for (const Piece& piece : scratch.pieces) append(word.substr(piece.begin, piece.end - piece.begin), out);
  }

 private:
  static size_t bytes_of(const StringToId& ids) {
    size_t bytes = 0;
    for (const auto& [token, id] : ids) bytes += token.size();
    return bytes;
  }

  int32_t unknown_id(std::string_view text) const {
    if (settings_.unknown) return *settings_.unknown;
    fail(ErrorCode::kUnsupported,
         "[tokenizer] no tokens spell '{}', and model.unk_id is null; a tokenizer that encodes any text has "
         "one",
         text);
  }

  void find_best(std::string_view word, Scratch& scratch) const {
    auto& nodes = scratch.nodes;
    nodes.assign(word.size() + 1, {});
    for (size_t begin = 0; begin < word.size();) {
      const double score = nodes[begin].score;
      const size_t size = first_char(word.substr(begin)).size;
      bool has_character = false;
      const auto reach = [&](size_t length, int32_t id, double gain) {
        Node& node = nodes[begin + length];
        if (!node.reached || score + gain > node.score) node = {score + gain, begin, id, true};
      };
      trie_.for_each_prefix(word.substr(begin), [&](size_t length, int32_t id) {
        reach(length, id, settings_.scores[size_t(id)]);
        has_character |= length == size;
      });
      if (!has_character) reach(size, unknown_id(word.substr(begin, size)), unknown_score_);
      begin += size;
    }
  }

  // Unknown pieces in a row become one.
  void trace_back(size_t end, Scratch& scratch) const {
    auto& pieces = scratch.pieces;
    pieces.clear();
    bool after_unknown = false;
    while (end > 0) {
      const Node& node = scratch.nodes[end];
      const bool unknown = settings_.unknown == node.id;
      if (unknown && after_unknown) {
        pieces.back().begin = node.begin;
      } else {
        pieces.push_back({node.begin, end});
      }
      after_unknown = unknown;
      end = node.begin;
    }
    std::ranges::reverse(pieces);
  }

  void append(std::string_view piece, std::vector<int32_t>& out) const {
    if (const auto found = ids_.find(piece); found != ids_.end()) return out.push_back(found->second);
    const bool falls_back = settings_.byte_fallback && std::ranges::all_of(piece, [&](char b) {
                              return fallback_[uint8_t(b)].has_value();
                            });
    if (!falls_back) return out.push_back(unknown_id(piece));
    for (char byte : piece) out.push_back(*fallback_[uint8_t(byte)]);
  }

  StringToId ids_;
  Settings settings_;
  ByteTrie trie_;
  double unknown_score_ = 0;
  std::optional<int32_t> fallback_[256];  // the tokens <0x00> to <0xFF>
};

}  // namespace

ReadModel read_unigram(const JsonView& json, bool) {
  const JsonView vocab = json.at("vocab");
  if (int64_t(vocab.size()) > kMaxTokenId + 1)
    vocab.fail(ErrorCode::kUnsupported, fmt::format("at most {} tokens are supported", kMaxTokenId + 1));
  ReadModel made;
  Unigram::Settings settings;
  vocab.for_each_item([&](const JsonView& item) {
    const auto id = int32_t(settings.scores.size());
    if (!item.is_array() || item.size() != 2) item.fail(ErrorCode::kIo, "a token and its score are expected");
    item.for_each_item([&](const JsonView& part) {
      if (size_t(id) == made.vocabulary.size)
        made.vocabulary.add(part.as_string(), id, part);
      else
        settings.scores.push_back(part.as_number());
    });
  });
  if (const auto unknown = json.find("unk_id")) {
    if (settings.scores.empty()) vocab.fail(ErrorCode::kIo, "at least the token of unk_id is expected");
    settings.unknown = int32_t(unknown->as_int(0, int64_t(settings.scores.size()) - 1));
  }
  if (const auto fallback = json.find("byte_fallback")) settings.byte_fallback = fallback->as_bool();
  made.model = std::make_unique<const Unigram>(made.vocabulary, std::move(settings));
  return made;
}

}  // namespace heddle
