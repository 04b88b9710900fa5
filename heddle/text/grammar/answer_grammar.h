// Holds an answer to a grammar: which tokens may come next, so that the text can always become a value of the grammar.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "heddle/text/grammar/json_grammar.h"
#include "heddle/text/token_trie.h"

namespace heddle {

// A grammar for the tokens of a vocabulary. Threads may share it.
class AnswerGrammar {
 public:
  // Finds out the tokens of strings in advance: milliseconds, where a vocabulary is large.
  AnswerGrammar(JsonGrammar grammar, std::shared_ptr<const TokenTrie> trie);

  const JsonGrammar& grammar() const { return grammar_; }
  const TokenTrie& trie() const { return *trie_; }

  // A place in a leaf: a state of its automaton, and the characters of a string so far, -1 before its quote.
  struct LeafPlace {
    u32 state = ByteDfa::kStart;
    i32 count = -1;
  };
  // Goes on by a byte; false if the leaf does not.
  bool step(const JsonNode& node, LeafPlace& place, u8 byte) const;
  bool accepts(const JsonNode& node, const LeafPlace& place) const {
    return grammar_.leaves[node.leaf]->accepts(place.state);
  }
  // Tells what a leaf says of the whole vocabulary: the tokens that stay inside or end with it, and the nodes of the trie at which it may
  // end, with tokens that go on after it.
  struct LeafTokens {
    std::vector<u32> bits;  // a bit for each token; empty if they are few
    std::vector<i32> few;
    std::vector<u32> exits;
  };
  std::shared_ptr<const LeafTokens> tokens_of(const JsonNode& node, const LeafPlace& place) const;
  // Calls inside(node) for the nodes of the trie in [begin, end) that the leaf takes from `place` on, and exit(node) where it may end.
  template <class Inside, class Exit>
  void walk(const JsonNode& node, const LeafPlace& place, u32 begin, u32 end, Inside&& inside,
            Exit&& exit) const;

 private:
  JsonGrammar grammar_;
  std::shared_ptr<const TokenTrie> trie_;
  using Key = std::tuple<u32, u32, u32, u32>;
  mutable std::mutex mutex_;
  mutable std::map<Key, std::shared_ptr<const LeafTokens>> known_;
};

// Where an answer stands: the ways in which the grammar can have made its text.
class GrammarState {
 public:
  explicit GrammarState(std::shared_ptr<const AnswerGrammar> grammar);

  // The token must be one that mask() allows. Throws Error where there are too many ways.
  void accept(i32 token);
  // Takes a text in the same way; false, with nothing changed, if the grammar does not allow it.
  bool accept(std::string_view text);
  // True if the text is a value of the grammar.
  bool is_complete() const;
  // Sets the bits of tokens that may come next, 32 a word, and of `ends` where the text is complete; others are 0. False if there is none.
  bool mask(std::span<const i32> ends, std::span<u32> words) const;

 private:
  struct Frame {
    enum Kind : u8 { kRoot, kLeaf, kObject, kArray, kSequence } kind = kRoot;
    enum Phase : u8 { kOpen, kFirst, kNext, kColon, kValue, kAfter } phase = kOpen;
    u8 spaces = 0;          // that came in a row
    bool is_other = false;  // the key is none of the properties
    u32 place = 0;          // the next property, item or part; a leaf's state
    i32 count = -1;         // a leaf's characters
    NodeId node = kNoNode;
    bool operator==(const Frame&) const = default;
  };
  struct Link {
    Frame frame;
    u32 parent, depth;  // levels of objects and arrays
  };
  using Ways = std::vector<u32>;  // links, the innermost ones

  u32 push(const Frame& frame, u32 parent, u32 more_depth = 0) const;
  u32 replace(u32 link, const Frame& frame) const;
  bool are_same(u32 a, u32 b) const;
  bool fits(NodeId node, u32 link) const;
  bool step(u8 byte);
  void enter(NodeId node, u32 parent, Ways& out) const;
  void resume(u32 link, Ways& out) const;
  void enter_and_step(NodeId node, u32 parent, u8 byte, Ways& out) const;
  void step(u32 link, u8 byte, Ways& out) const;
  void step_leaf(u32 link, u8 byte, Ways& out) const;
  void step_object(u32 link, u8 byte, Ways& out) const;
  void step_array(u32 link, u8 byte, Ways& out) const;
  void step_keys(u32 link, u8 byte, Ways& out) const;
  bool has_more_keys(u32 link) const;
  bool may_close(const Frame& frame) const;
  void compact();

  void allow(u32 node, std::span<u32> words) const;
  void walk(u32 link, u32 begin, u32 end, std::span<u32> words) const;
  void walk_leaf(u32 link, u32 begin, u32 end, std::span<u32> words) const;

  std::shared_ptr<const AnswerGrammar> grammar_;
  mutable std::vector<Link> links_;  // mask() appends some, and takes them back
  Ways ways_;
};

}  // namespace heddle
