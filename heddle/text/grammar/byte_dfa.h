// Deterministic automata over bytes, and what they are made of. They accept whole texts: leaves of a grammar.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

class ByteDfa {
 public:
  static constexpr u32 kDead = 0, kStart = 1;
  static constexpr u32 kMostStates = 8192;  // larger ones are refused while they are made

  u32 next(u32 state, u8 byte) const { return table_[size_t(state) * classes_ + class_of_[byte]]; }
  bool accepts(u32 state) const { return (flags_[state] & kAccepts) != 0; }
  // True if a byte may follow.
  bool goes_on(u32 state) const { return (flags_[state] & kGoesOn) != 0; }
  bool accepts(std::string_view text) const;
  bool is_empty() const { return !goes_on(kStart) && !accepts(kStart); }
  u32 states() const { return u32(flags_.size()); }

  // Texts that both accept, and those that `a` accepts and `b` does not.
  static ByteDfa both(const ByteDfa& a, const ByteDfa& b) { return product(a, b, true); }
  static ByteDfa without(const ByteDfa& a, const ByteDfa& b) { return product(a, b, false); }

 private:
  friend class DfaBuilder;
  enum : u8 { kAccepts = 1, kGoesOn = 2 };
  static ByteDfa product(const ByteDfa& a, const ByteDfa& b, bool in_b);

  std::array<u8, 256> class_of_ = {};
  u32 classes_ = 1;
  std::vector<u16> table_;  // [states, classes]
  std::vector<u8> flags_;   // [states]
};

// Makes one from rows of 256 states. States that lead to no accepted text become kDead.
class DfaBuilder {
 public:
  DfaBuilder() { add(), add(); }
  u32 add();  // throws Error beyond kMostStates
  void set(u32 from, u8 low, u8 high, u32 to);
  void set_each(u32 from, std::string_view bytes, u32 to);
  void accept(u32 state) { accepts_[state] = true; }
  ByteDfa build();

 private:
  void drop_dead_ends();
  std::vector<std::array<u16, 256>> rows_;
  std::vector<bool> accepts_;
};

// An automaton with several ways for a byte, as patterns are read into.
class ByteNfa {
 public:
  static constexpr u32 kMostStates = 50'000;
  static constexpr size_t kMostWork = 1'000'000;  // states of sets that are looked at

  u32 add();  // throws Error beyond kMostStates
  void edge(u32 from, u8 low, u8 high, u32 to) { states_[from].edges.push_back({low, high, to}); }
  void skip(u32 from, u32 to) { states_[from].skips.push_back(to); }
  // Accepts what leads from `begin` to `end`.
  ByteDfa determinised(u32 begin, u32 end) const;

 private:
  struct Edge {
    u8 low, high;
    u32 to;
  };
  struct State {
    std::vector<Edge> edges;
    std::vector<u32> skips;
  };
  void close(std::vector<u32>& set) const;
  std::vector<State> states_;
};

// Accepts these texts.
ByteDfa dfa_of_texts(const std::vector<std::string>& texts);

}  // namespace heddle
