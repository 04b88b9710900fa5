// Text from people: checked before it is used, so that nothing is taken for something else in silence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

std::string read_stdin();

// Whole numbers with spaces or commas between them; throws Error on anything else. `where` is for messages.
std::vector<int64_t> parse_ids(std::string_view text, const std::string& where);
// The same for what fits a token id.
std::vector<int32_t> parse_tokens(std::string_view text, const std::string& where);

// Throws Error that names the first byte where `text` is not UTF-8.
void require_utf8(std::string_view text, const std::string& where);

}  // namespace heddle
