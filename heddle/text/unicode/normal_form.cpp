#include "heddle/text/unicode/normal_form.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>

#include <utf8proc.h>

#include "heddle/text/unicode/normal_form_exceptions.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

bool is_plain(uint32_t c) {
  const auto* after = std::ranges::upper_bound(kPlainRanges, char32_t(c), {}, &PlainRange::first);
  return after != std::begin(kPlainRanges) && c <= std::prev(after)->last;
}

void append_form(std::string_view text, utf8proc_option_t options, std::string& out) {
  if (text.empty()) return;
  utf8proc_uint8_t* made = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 utf8proc_ssize_t(text.size()), &made, options);
  if (size < 0) throw std::bad_alloc();  // the only possible failure with valid UTF-8
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  out.append(reinterpret_cast<const char*>(made), size_t(size));
}

}  // namespace

// Runs of ASCII stay unchanged, and no form moves or joins anything before an ASCII character. The last one
// of a run may be joined with what follows.
std::string to_normal_form(std::string_view text, NormalForm form) {
  const bool composes = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const auto options =
      utf8proc_option_t(UTF8PROC_STABLE | (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                        (compatible ? UTF8PROC_COMPAT : 0));
  std::string out;
  out.reserve(text.size());
  size_t done = 0;  // text that is already in `out`
  for (size_t at = 0; at < text.size();) {
    const auto is_ascii = [](char c) { return uint8_t(c) < 0x80; };
    const size_t begin = size_t(std::ranges::find_if_not(text.substr(at), is_ascii) - text.begin());
    if (begin == text.size()) break;
    const size_t first = begin > at ? begin - 1 : begin;
    out += text.substr(done, first - done);
    done = first;
    for (at = begin; at < text.size() && !is_ascii(text[at]);) {
      const Utf8Char c = first_char(text.substr(at));
      if (is_plain(c.code_point)) {
        append_form(text.substr(done, at - done), options, out);
        out += text.substr(at, c.size);
        done = at + c.size;
      }
      at += c.size;
    }
    append_form(text.substr(done, at - done), options, out);
    done = at;
  }
  return out.append(text.substr(done));
}

std::string to_lower_case(std::string_view text) {
  constexpr uint32_t kDottedI = 0x130, kDotAbove = 0x307;
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = first_char(text);
    const auto* exception =
        std::ranges::lower_bound(kLowerExceptions, char32_t(c.code_point), {}, &LowerException::character);
    if (c.code_point == kDottedI) {
      out += 'i';
      append_utf8(kDotAbove, out);
    } else if (exception != std::end(kLowerExceptions) && exception->character == c.code_point) {
      append_utf8(uint32_t(exception->lower), out);
    } else {
      append_utf8(uint32_t(utf8proc_tolower(int32_t(c.code_point))), out);
    }
    text.remove_prefix(c.size);
  }
  return out;
}

}  // namespace heddle
