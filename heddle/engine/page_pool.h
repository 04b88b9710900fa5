// The KV pages of an engine: which are free, how many sequences hold each, and the content of full ones.
// Sequences with the same beginning share whole pages, found by content; a sequence that writes a page is its
// only holder. A free page can be found by its content until it is taken.
#pragma once

#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

class PagePool {
 public:
  PagePool(i32 pages, i32 page_size) : count_(pages), page_size_(page_size) {}

  i32 page_size() const { return page_size_; }
  i32 pages_for(i32 positions) const { return (positions + page_size_ - 1) / page_size_; }
  size_t free_pages() const { return free_.size() + (size_t(count_) - pages_.size()); }

  // Takes a page for one holder, which will write it: a page that was never used, or else the one that was
  // released first. There must be one.
  i32 take();
  void hold(i32 page);    // adds a holder
  void let_go(i32 page);  // removes a holder
  bool is_shared(i32 page) const { return pages_[size_t(page)].holders > 1; }

  // Records the content of the last of `pages`: the positions of `tokens` up to its end. The pages before it
  // are recorded already.
  void note(std::span<const i32> pages, std::span<const i32> tokens);
  // Called before its holder writes it again.
  void forget(i32 page);
  // No page is found by its content any more. Nobody holds one.
  void forget_all();
  // Finds the pages whose content is the longest beginning of `tokens` in whole pages. The caller does not
  // hold them yet.
  std::vector<i32> find(std::span<const i32> tokens) const;

 private:
  // The content of a full page: its tokens after the content of the previous page. Numbers are never reused,
  // so pages that followed a page which was taken again cannot be found.
  using Content = u64;
  static constexpr Content kNone = 0;
  using Key = std::pair<Content, std::vector<i32>>;
  struct Page {
    i32 holders = 0;
    Content content = kNone;
    u64 freed = 0;  // its place in free_
  };

  i32 count_, page_size_;
  std::vector<Page> pages_;             // pages that were used
  std::set<std::pair<u64, i32>> free_;  // when each was released
  std::map<Key, i32> page_of_;
  std::map<i32, Key> key_of_;  // for the pages that can be found
  u64 clock_ = 0;
};

}  // namespace heddle
