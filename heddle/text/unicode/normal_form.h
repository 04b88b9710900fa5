// Unicode's normal forms and lower case, character by character as in `tokenizers`. Its tables come from
// other versions of Unicode than utf8proc's; normal_form_exceptions.h lists the differences.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// `text` is valid UTF-8.
std::string to_normal_form(std::string_view text, NormalForm form);
std::string to_lower_case(std::string_view text);

}  // namespace heddle
