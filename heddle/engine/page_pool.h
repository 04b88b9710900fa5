// The KV pages of an engine: which are free, how many sequences hold each, and what full ones keep. Sequences
// with the same beginning hold the same pages; a free page can be found by what it keeps until it is taken.
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

  // A page for one holder, which will write it: one that was never used, else that which was let go first. There must
  // be one.
  i32 take();
  void hold(i32 page);    // by one more
  void let_go(i32 page);  // by one
  bool is_shared(i32 page) const { return pages_[size_t(page)].holders > 1; }

  // Notes what the last of `pages` keeps: the positions of `tokens` up to its end. Those before it are noted already.
  void note(std::span<const i32> pages, std::span<const i32> tokens);
  // Its holder will write it again.
  void forget(i32 page);
  // The pages, not held yet for the caller, of the longest beginning of `tokens` that whole pages keep.
  std::vector<i32> find(std::span<const i32> tokens) const;

 private:
  // The content of a full page: its tokens behind the content of the page before. Numbers are never used twice, so
  // that what follows a page that was taken again cannot be found.
  using Content = u64;
  static constexpr Content kNone = 0;
  using Key = std::pair<Content, std::vector<i32>>;
  struct Page {
    i32 holders = 0;
    Content content = kNone;
    u64 freed = 0;  // its place in free_
  };

  i32 count_, page_size_;
  std::vector<Page> pages_;             // those that were used
  std::set<std::pair<u64, i32>> free_;  // when each was let go
  std::map<Key, i32> page_of_;
  std::map<i32, Key> key_of_;  // of the pages that can be found
  u64 clock_ = 0;
};

}  // namespace heddle
