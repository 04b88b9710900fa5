#include "heddle/engine/page_pool.h"

#include "heddle/base/invariant.h"

namespace heddle {

i32 PagePool::take() {
  if (i32(pages_.size()) < count_) {
    pages_.push_back({.holders = 1});
    return i32(pages_.size()) - 1;
  }
  HEDDLE_CHECK(!free_.empty());
  const i32 page = free_.begin()->second;
  free_.erase(free_.begin());
  forget(page);
  pages_[size_t(page)].holders = 1;
  return page;
}

void PagePool::hold(i32 page) {
  Page& p = pages_[size_t(page)];
  if (p.holders++ == 0) free_.erase({p.freed, page});
}

void PagePool::let_go(i32 page) {
  Page& p = pages_[size_t(page)];
  HEDDLE_CHECK(p.holders > 0);
  if (--p.holders > 0) return;
  p.freed = ++clock_;
  free_.emplace(p.freed, page);
}

void PagePool::note(std::span<const i32> pages, std::span<const i32> tokens) {
  const i32 page = pages.back();
  const size_t begin = (pages.size() - 1) * size_t(page_size_);
  HEDDLE_CHECK(tokens.size() == begin + size_t(page_size_));
  const Content before = pages.size() > 1 ? pages_[size_t(pages[pages.size() - 2])].content : kNone;
  const auto last = tokens.subspan(begin);
  Key key{before, {last.begin(), last.end()}};
  if (const auto found = page_of_.find(key); found != page_of_.end()) {
    pages_[size_t(page)].content = pages_[size_t(found->second)].content;  // a second copy
    return;
  }
  pages_[size_t(page)].content = ++clock_;
  page_of_.emplace(key, page);
  key_of_.emplace(page, std::move(key));
}

void PagePool::forget(i32 page) {
  pages_[size_t(page)].content = kNone;
  const auto key = key_of_.find(page);
  if (key == key_of_.end()) return;
  page_of_.erase(key->second);
  key_of_.erase(key);
}

void PagePool::forget_all() {
  HEDDLE_CHECK(free_.size() == pages_.size());
  for (Page& page : pages_) page.content = kNone;
  page_of_.clear();
  key_of_.clear();
}

std::vector<i32> PagePool::find(std::span<const i32> tokens) const {
  std::vector<i32> pages;
  Content before = kNone;
  for (; tokens.size() >= size_t(page_size_); tokens = tokens.subspan(size_t(page_size_))) {
    const auto found = page_of_.find({before, {tokens.begin(), tokens.begin() + page_size_}});
    if (found == page_of_.end()) break;
    pages.push_back(found->second);
    before = pages_[size_t(found->second)].content;
  }
  return pages;
}

}  // namespace heddle
