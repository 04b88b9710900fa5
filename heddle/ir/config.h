// A configuration of an op's kernel: named integers, such as {"tile_m": 128, "stages": 4}. An op lists its
// configurations (OpSpec::configs), and a caller or the tuner chooses one. Only the op knows what the names mean.
#pragma once

#include <compare>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

class OpConfig {
 public:
  using Value = std::pair<std::string, i64>;

  OpConfig() = default;
  // Throws Error(kInvalidArgument) when a name is empty, comes twice, or does not consist of [a-z0-9_] after
  // a first letter.
  OpConfig(std::initializer_list<std::pair<std::string_view, i64>> values);
  // Marks a configuration that adds terms in another order than the op's first one. Its results differ in
  // their last bits, so it is chosen only where the caller allows that.
  OpConfig reordering() const;

  // Throws Error(kInvalidArgument) when there is no such name.
  i64 at(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  const std::vector<Value>& values() const { return values_; }  // sorted by name
  bool reorders() const { return reorders_; }

  // Text such as "stages=4,tile_m=128" or "split=2,tile_m=128,reorders"; "default" when nothing is set.
  std::string text() const;
  // The inverse of text(); names may come in any order.
  static OpConfig parse(std::string_view text);

  auto operator<=>(const OpConfig&) const = default;
  // Depends only on the text, so files may store it.
  u64 hash() const;

 private:
  const i64* find(std::string_view name) const;
  void add(std::string_view name, i64 value);

  std::vector<Value> values_;  // sorted by name
  bool reorders_ = false;
};

}  // namespace heddle

template <>
struct std::hash<heddle::OpConfig> {
  size_t operator()(const heddle::OpConfig& config) const { return size_t(config.hash()); }
};
