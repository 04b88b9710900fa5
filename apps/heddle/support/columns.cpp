#include "apps/heddle/support/columns.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace heddle {
namespace {

constexpr size_t kUsual = 80, kLeast = 40;

// Characters of UTF-8: bytes but those that go on with a character.
size_t width(std::string_view text) {
  return size_t(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// One line, without its end.
void append_wrapped(std::string& made, std::string_view line, size_t columns, size_t indent) {
  const std::string margin(indent, ' ');
  size_t used = width(line.substr(0, line.find_first_not_of(' ')));
  made.append(used, ' ');
  bool is_first = true;  // word of its line
  for (line.remove_prefix(std::min(used, line.size())); !line.empty();) {
    // A word and the spaces before it.
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    if (!is_first && used + begin + width(word) > columns) {
      made += "\n" + margin;
      used = indent;
    } else {
      made += line.substr(0, begin);
      used += begin;
    }
    made += word;
    used += width(word);
    is_first = false;
    line.remove_prefix(end);
  }
}

}  // namespace

size_t output_columns() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return std::max<size_t>(known ? size.ws_col : kUsual, kLeast);
}

std::string wrapped(std::string_view text, size_t columns, size_t indent) {
  std::string made;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    append_wrapped(made, text.substr(0, end), columns, indent);
    if (end < text.size()) made += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return made;
}

std::string filled(std::string_view text) {
  std::string made(text);
  for (size_t i = 1; i + 1 < made.size(); ++i) {
    const bool goes_on = made[i - 1] != '.' && made[i - 1] != ':' && made[i + 1] >= 'a' && made[i + 1] <= 'z';
    if (made[i] == '\n' && goes_on) made[i] = ' ';
  }
  return made;
}

std::string listed(std::string_view name, std::string_view text, size_t name_columns) {
  return wrapped(fmt::format("{:<{}}{}", name, name_columns, text), output_columns(), name_columns) + "\n";
}

}  // namespace heddle
