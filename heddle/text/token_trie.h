// A vocabulary as bytes: which tokens a text of so many bytes may begin with.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

// Nodes lie in the order of their texts: those below a node follow it, up to `next`.
class TokenTrie {
 public:
  struct Node {
    u32 next;  // the node after all that begin with this one
    u32 token;  // the place in tokens_of() of the first token with this text; those of the next node begin where they end
    u8 byte;   // the last one of its text
    u8 depth;  // bytes of its text
  };
  static constexpr size_t kMostBytes = 255;  // longer tokens are left out

  // Begins the texts of special tokens: a byte that no other text has.
  static constexpr char kSpecial = '\xFF';

  // Texts of tokens by their numbers; empty ones are never chosen.
  explicit TokenTrie(std::vector<std::string> texts);

  const std::vector<Node>& nodes() const { return nodes_; }
  // The tokens whose text ends at a node.
  std::span<const i32> tokens_of(u32 node) const {
    const u32 end = node + 1 < nodes_.size() ? nodes_[node + 1].token : u32(tokens_.size());
    return std::span(tokens_).subspan(nodes_[node].token, end - nodes_[node].token);
  }
  std::string_view text(i32 token) const;  // empty for a token that is none
  i32 size() const { return i32(texts_.size()); }
  u32 longest() const { return longest_; }  // bytes of a token

 private:
  std::vector<std::string> texts_;
  std::vector<Node> nodes_;
  std::vector<i32> tokens_;
  u32 longest_ = 0;
};

}  // namespace heddle
