// The alphabet of byte-level BPE (GPT-2): a byte is a printable character, so that a vocabulary of byte
// strings can be written as text. Printable bytes of Latin-1 stand for themselves, the other 68 for U+0100
// on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

// The bytes that `token` spells; nothing if it has a character outside the alphabet.
std::optional<std::string> byte_level_decode(std::string_view token);

std::string byte_level_encode(std::string_view bytes);

}  // namespace heddle
