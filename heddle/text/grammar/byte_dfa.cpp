#include "heddle/text/grammar/byte_dfa.h"

#include <algorithm>
#include <map>

#include "heddle/base/error.h"

namespace heddle {

bool ByteDfa::accepts(std::string_view text) const {
  u32 state = kStart;
  for (const char c : text) state = next(state, u8(c));
  return accepts(state);
}

ByteDfa ByteDfa::product(const ByteDfa& a, const ByteDfa& b, bool in_b) {
  using Pair = std::pair<u32, u32>;
  DfaBuilder made;
  std::map<Pair, u32> numbers{{{kStart, kStart}, kStart}};
  std::vector<Pair> waiting{{kStart, kStart}};
  while (!waiting.empty()) {
    const auto [x, y] = waiting.back();
    waiting.pop_back();
    const u32 from = numbers.at({x, y});
    if (a.accepts(x) && b.accepts(y) == in_b) made.accept(from);
    for (u32 byte = 0; byte < 256; ++byte) {
      const Pair to{a.next(x, u8(byte)), b.next(y, u8(byte))};
      if (to.first == kDead || (in_b && to.second == kDead)) continue;
      const auto [at, is_new] = numbers.try_emplace(to, 0);
      if (is_new) at->second = made.add(), waiting.push_back(to);
      made.set(from, u8(byte), u8(byte), at->second);
    }
  }
  return made.build();
}

u32 DfaBuilder::add() {
  require(rows_.size() < ByteDfa::kMostStates, "it needs an automaton of more than {} states; ask for less",
          ByteDfa::kMostStates);
  rows_.emplace_back().fill(ByteDfa::kDead);
  accepts_.push_back(false);
  return u32(rows_.size()) - 1;
}

void DfaBuilder::set(u32 from, u8 low, u8 high, u32 to) {
  std::fill(rows_[from].begin() + low, rows_[from].begin() + high + 1, u16(to));
}

void DfaBuilder::set_each(u32 from, std::string_view bytes, u32 to) {
  for (const char byte : bytes) rows_[from][u8(byte)] = u16(to);
}

void DfaBuilder::drop_dead_ends() {
  std::vector<std::vector<u32>> before(rows_.size());
  for (u32 from = 1; from < rows_.size(); ++from)
    for (const u16 to : rows_[from])
      if (before[to].empty() || before[to].back() != from) before[to].push_back(from);
  std::vector<bool> lives = accepts_;
  std::vector<u32> waiting;
  for (u32 state = 0; state < rows_.size(); ++state)
    if (lives[state]) waiting.push_back(state);
  while (!waiting.empty()) {
    const u32 to = waiting.back();
    waiting.pop_back();
    for (const u32 from : before[to])
      if (!lives[from]) lives[from] = true, waiting.push_back(from);
  }
  for (auto& row : rows_)
    for (u16& to : row)
      if (!lives[to]) to = ByteDfa::kDead;
}

ByteDfa DfaBuilder::build() {
  drop_dead_ends();
  ByteDfa made;
  std::map<std::vector<u16>, u8> classes;  // by columns
  std::vector<u32> first;                  // a byte of each class
  for (u32 byte = 0; byte < 256; ++byte) {
    std::vector<u16> column;
    for (const auto& row : rows_) column.push_back(row[byte]);
    const auto [at, is_new] = classes.try_emplace(std::move(column), u8(classes.size()));
    if (is_new) first.push_back(byte);
    made.class_of_[byte] = at->second;
  }
  made.classes_ = u32(first.size());
  for (u32 state = 0; state < rows_.size(); ++state) {
    bool goes_on = false;
    for (const u32 byte : first) {
      made.table_.push_back(rows_[state][byte]);
      goes_on |= rows_[state][byte] != ByteDfa::kDead;
    }
    made.flags_.push_back(u8((accepts_[state] ? ByteDfa::kAccepts : 0) | (goes_on ? ByteDfa::kGoesOn : 0)));
  }
  return made;
}

u32 ByteNfa::add() {
  require(states_.size() < kMostStates, "it needs an automaton of more than {} states; ask for less",
          kMostStates);
  states_.emplace_back();
  return u32(states_.size()) - 1;
}

// Adds what a set reaches without a byte, and sorts it.
void ByteNfa::close(std::vector<u32>& set) const {
  std::vector<u32> waiting = set;
  std::ranges::sort(set);
  while (!waiting.empty()) {
    const u32 from = waiting.back();
    waiting.pop_back();
    for (const u32 to : states_[from].skips) {
      const auto at = std::ranges::lower_bound(set, to);
      if (at != set.end() && *at == to) continue;
      set.insert(at, to);
      waiting.push_back(to);
    }
  }
}

ByteDfa ByteNfa::determinised(u32 begin, u32 end) const {
  DfaBuilder made;
  std::vector<u32> start{begin};
  close(start);
  std::map<std::vector<u32>, u32> numbers{{start, ByteDfa::kStart}};
  std::vector<std::vector<u32>> waiting{start};
  size_t work = 0;
  while (!waiting.empty()) {
    const std::vector<u32> set = std::move(waiting.back());
    waiting.pop_back();
    work += set.size();
    require(work <= kMostWork, "it takes too long to read; ask for less");
    const u32 from = numbers.at(set);
    if (std::ranges::binary_search(set, end)) made.accept(from);
    std::vector<u32> borders{256};  // between which all bytes do the same
    for (const u32 state : set)
      for (const Edge& edge : states_[state].edges)
        borders.push_back(edge.low), borders.push_back(u32(edge.high) + 1);
    std::ranges::sort(borders);
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      std::vector<u32> to;
      for (const u32 state : set)
        for (const Edge& edge : states_[state].edges)
          if (edge.low <= borders[i] && borders[i] <= edge.high) to.push_back(edge.to);
      if (to.empty()) continue;
      std::ranges::sort(to);
      to.erase(std::unique(to.begin(), to.end()), to.end());
      close(to);
      const auto [at, is_new] = numbers.try_emplace(to, 0);
      if (is_new) at->second = made.add(), waiting.push_back(std::move(to));
      made.set(from, u8(borders[i]), u8(borders[i + 1] - 1), at->second);
    }
  }
  return made.build();
}

ByteDfa dfa_of_texts(const std::vector<std::string>& texts) {
  DfaBuilder made;
  std::map<std::pair<u32, u8>, u32> next;
  for (const std::string& text : texts) {
    u32 state = ByteDfa::kStart;
    for (const char c : text) {
      const auto [at, is_new] = next.try_emplace({state, u8(c)}, 0);
      if (is_new) at->second = made.add(), made.set(state, u8(c), u8(c), at->second);
      state = at->second;
    }
    made.accept(state);
  }
  return made.build();
}

}  // namespace heddle
