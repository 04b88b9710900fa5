// Checks text from people before it is used, so that nothing is misread silently.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// Keeps descriptors 0 to 2 from files that are opened later, if the program was started without them. They stay
// unreadable, or unwritable. Call it first.
void hold_standard_descriptors();

// Throws Error(kIo) that names stdin and errno, as the others do when it cannot be read.
[[noreturn]] void fail_stdin();
std::string read_stdin();

// A text of a file without a byte-order mark at its beginning, and without its last LF or CR LF.
std::string without_mark_and_end(std::string_view text);

class StdinLines {
 public:
  // Gives the next line, without its end and, before the first, a byte-order mark. False at the end of stdin.
  bool next(std::string& line);

 private:
  std::string buffer_;
  size_t at_ = 0;
  bool first_ = true, ended_ = false;
};

// Parses whole numbers with spaces or commas between them. Throws Error on anything else; messages name it
// `where`.
std::vector<int64_t> parse_ids(std::string_view text, const std::string& where);
// Same, for numbers in the range of a token id.
std::vector<int32_t> parse_tokens(std::string_view text, const std::string& where);

// Throws Error that names the first byte at which `text` is not UTF-8.
void require_utf8(std::string_view text, const std::string& where);

}  // namespace heddle
