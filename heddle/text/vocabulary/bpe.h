// Byte pair encoding of one word. It starts from the word's bytes (or characters) and merges the adjacent
// pair with the lowest rank, the left one of equals, until no adjacent pair is in the list of merges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/vocabulary/model.h"

namespace heddle {

class Bpe final : public TokenModel {
 public:
  struct Merge {
    int32_t left, right, result;
  };
  struct Options {
    std::optional<int32_t> unknown;  // for bytes that are not tokens; without it they are dropped
    std::string missing_unknown;     // the token for these; it does not exist, so they are an error
    bool fuse_unknown = false;       // a run of unknown bytes is one token
    bool ignore_merges = false;      // a word that is a token becomes that token, whatever the merges say
    // starts from the characters of a word, as SentencePiece does, not from its bytes
    bool by_characters = false;
    bool byte_fallback = false;  // a character that is not a token becomes the tokens <0x00> … of its bytes
    // Written before the characters of a word but the first, and after the last one; only by characters.
    std::string prefix, suffix;
  };
  // Working memory of one thread. Callers do not look into it.
  struct Scratch {
    struct Symbol {
      int32_t id;              // negative after it was merged into the one before
      int32_t previous, next;  // positions, -1 at the ends
    };
    struct Candidate {
      uint64_t key;  // rank, then position: the smallest is merged first
      int32_t left, right;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> queue;  // a heap
  };

  std::unique_ptr<WordEncoder> encoder(std::vector<int32_t>& out) const override;

  // `tokens`: byte strings; `merges` in order of rank.
  Bpe(StringToId tokens, const std::vector<Merge>& merges, Options options);

  // Calls `part` for pieces of `word` that can be encoded separately: no token reaches over their ends. They
  // make a text without word borders cheap.
  template <class Part>
  void split(std::string_view word, Part&& part) const {
    size_t begin = 0;
    for (size_t end = part_end(word, begin); begin < word.size(); end = part_end(word, begin)) {
      part(word.substr(begin, end - begin));
      begin = end;
    }
  }

  // Appends the tokens of `word` to `out`. Takes n log n steps.
  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& out) const;

 private:
  struct Slot {
    uint64_t pair;
    uint32_t rank;
    int32_t result;
  };
  static uint64_t pair_of(int32_t left, int32_t right) {
    return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  }
  const Slot* find(int32_t left, int32_t right) const;
  size_t first_slot(uint64_t pair) const { return size_t(pair * 0x9E3779B97F4A7C15u >> shift_); }
  void insert(const Slot& slot);
  void read_fallback();
  void find_joints(const std::vector<Merge>& merges);
  size_t part_end(std::string_view word, size_t begin) const;
  bool joined(uint32_t left, uint32_t right) const;
  void start(std::string_view word, Scratch& scratch) const;
  void start_bytes(std::string_view word, Scratch& scratch) const;
  void start_characters(std::string_view word, Scratch& scratch) const;
  bool has_unknown() const;
  std::string_view written(std::string_view c, bool first, bool last, std::string& memory) const;
  void consider(int32_t position, Scratch& scratch) const;

  StringToId tokens_;
  int32_t byte_token_[256];               // -1 if the byte is not a token
  std::optional<int32_t> fallback_[256];  // the tokens <0x00> to <0xFF>
  bool always_known_ = false;             // all of those exist
  // Hashed bits of the character pairs that some merge makes adjacent: any other pair is never inside one
  // token. Empty if words are not split.
  std::vector<uint64_t> joints_;
  Options options_;
  std::vector<Slot> slots_;  // open addressing, a power of two of them
  int shift_ = 0;
};

}  // namespace heddle
