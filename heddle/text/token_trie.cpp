#include "heddle/text/token_trie.h"

#include <algorithm>
#include <numeric>

namespace heddle {

TokenTrie::TokenTrie(std::vector<std::string> texts) : texts_(std::move(texts)) {
  std::vector<i32> order;
  for (i32 id = 0; id < size(); ++id)
    if (const size_t bytes = texts_[size_t(id)].size(); bytes > 0 && bytes <= kMostBytes) {
      order.push_back(id);
      longest_ = std::max(longest_, u32(bytes));
    }
  std::ranges::stable_sort(order, {}, [&](i32 id) { return std::string_view(texts_[size_t(id)]); });
  std::vector<u32> path;  // nodes of the text so far
  std::string_view last;
  const auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) nodes_[path.back()].next = u32(nodes_.size());
  };
  for (const i32 id : order) {
    const std::string_view now = texts_[size_t(id)];
    close(size_t(std::ranges::mismatch(now, last).in1 - now.begin()));
    for (size_t i = path.size(); i < now.size(); ++i) {
      path.push_back(u32(nodes_.size()));
      nodes_.push_back({.next = 0, .token = u32(tokens_.size()), .byte = u8(now[i]), .depth = u8(i + 1)});
    }
    tokens_.push_back(id);
    last = now;
  }
  close(0);
}

std::string_view TokenTrie::text(i32 token) const {
  return token >= 0 && token < size() ? std::string_view(texts_[size_t(token)]) : std::string_view();
}

}  // namespace heddle
