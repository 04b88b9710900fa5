// Little-endian fields of a file, written and read in order.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "heddle/base/error.h"
#include "heddle/base/types.h"

namespace heddle {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

class ByteWriter {
 public:
  std::string out;

  template <class T>
    requires std::is_arithmetic_v<T>
  void put(T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  // Writes a 16-bit length and then the text; a longer text loses its end.
  void text(std::string_view value) {
    value = value.substr(0, 0xffff);
    put(u16(value.size()));
    out.append(value);
  }
};

class ByteReader {
 public:
  ByteReader(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(get<u16>())); }
  std::string_view take(size_t count) {
    if (count > left()) refuse("ends inside a field");
    const std::string_view bytes = bytes_.substr(at_, count);
    at_ += count;
    return bytes;
  }
  // Reads a count of elements that take at least `bytes` each. It refuses a count that cannot fit into the
  // rest of the file before it allocates memory.
  template <class T>
  size_t count(size_t bytes) {
    const u64 n = get<T>();
    if (n > left() / bytes) refuse("counts more things than it has bytes");
    return size_t(n);
  }
  size_t left() const { return bytes_.size() - at_; }
  [[noreturn]] void refuse(std::string_view why) const {
    fail(ErrorCode::kIo, "[{}] not a .nanotrace: byte {} of {}: {}", where_, at_, bytes_.size(), why);
  }

 private:
  std::string_view bytes_;
  const std::string& where_;
  size_t at_ = 0;
};

}  // namespace heddle
