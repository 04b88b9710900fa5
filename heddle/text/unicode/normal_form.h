// Unicode's normal forms and lower case, character by character as `tokenizers` has them: its tables are of other
// versions of Unicode than utf8proc's, and the differences are listed in normal_form_exceptions.h.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// `text` is valid UTF-8.
std::string to_normal_form(std::string_view text, NormalForm form);
std::string to_lower_case(std::string_view text);

}  // namespace heddle
