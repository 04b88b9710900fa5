// The keys that requests must have one of, from a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle {

class Keys {
 public:
  Keys() = default;  // every request is let in
  // A key a line; empty lines and those that begin with # are none. Throws Error(kIo) where there is no key.
  static Keys load(const std::string& file);

  // The time it takes tells nothing but the length of `given`.
  bool has(std::string_view given) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace heddle
