// A configuration of an op's kernel: named integers, such as {"tile_m": 128, "stages": 4}. An op lists those that it has;
// the tuner chooses one of them. What the names mean is the op's own.
#pragma once

#include <compare>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

class Config {
 public:
  using Value = std::pair<std::string, i64>;

  Config() = default;
  // Throws Error(kInvalidArgument) where a name comes twice, is empty, or is not of [a-z0-9_] from a letter on.
  Config(std::initializer_list<Value> values);
  // The configuration that adds terms in another order than the op's first one does: its results differ in their last
  // bits, so that it is chosen only where that is allowed.
  Config reordering() const;

  // Throws Error(kInvalidArgument) where there is no such name.
  i64 at(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  const std::vector<Value>& values() const { return values_; }  // by name
  bool reorders() const { return reorders_; }

  // "stages=4,tile_m=128", or "split=2,tile_m=128,reorders"; "default" where nothing is set.
  std::string text() const;
  // The inverse of text(); names may come in any order.
  static Config parse(std::string_view text);

  auto operator<=>(const Config&) const = default;
  // Depends on nothing but the text, so that it may be kept in files.
  u64 hash() const;

 private:
  const i64* find(std::string_view name) const;
  void add(std::string_view name, i64 value);

  std::vector<Value> values_;  // by name
  bool reorders_ = false;
};

}  // namespace heddle

template <>
struct std::hash<heddle::Config> {
  size_t operator()(const heddle::Config& config) const { return size_t(config.hash()); }
};
