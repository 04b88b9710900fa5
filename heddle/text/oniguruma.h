// Patterns of tokenizer.json are written for Oniguruma with Unicode 16; this turns them into patterns that
// mean the same to PCRE2 in its UTF, UCP and multi-line mode. What differs and is not handled is an error
// that names the construct: a pattern that is accepted means what `tokenizers` takes it to mean.
//
// Handled differences:
//   \s \S             Unicode's White_Space (PCRE2 adds U+180E)
//   \d \w \b \p{L} …  characters that Unicode added after the tables of PCRE2 10.42 (Unicode 14)
//   \h \v             a hexadecimal digit, and U+000B
//   {n}? {n,m}+ {,m}  an optional repeat, a repeat of the repeat, and {0,m}
//   (?m:              `.` matches a line feed
// Refused: back references, \X, \R, \N, nested and intersected classes, POSIX brackets, scripts, \p{C},
//   options that begin inside a pattern, and letters under (?i) that fold to several characters.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

// Throws Error(kUnsupported) or, when `pattern` is not a valid pattern, Error(kInvalidArgument).
std::string pcre2_from_oniguruma(std::string_view pattern);

// A PCRE2 pattern that matches exactly `text`, which is valid UTF-8.
std::string pcre2_from_text(std::string_view text);

}  // namespace heddle
