// Checks text from people before it is used, so that nothing is misread silently.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

std::string read_stdin();

// Parses whole numbers with spaces or commas between them. Throws Error on anything else; messages name it
// `where`.
std::vector<int64_t> parse_ids(std::string_view text, const std::string& where);
// Same, for numbers in the range of a token id.
std::vector<int32_t> parse_tokens(std::string_view text, const std::string& where);

// Throws Error that names the first byte at which `text` is not UTF-8.
void require_utf8(std::string_view text, const std::string& where);

}  // namespace heddle
