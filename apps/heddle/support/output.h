// Writes text to stdout, where a full disk or a closed pipe is an error; and keeps files from being overwritten.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace heddle {

class Json;

// All throw Error(kIo) when stdout cannot be written.
void print(std::string_view text);
template <class First, class... Rest>
void print(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  print(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
}
void print_json(const Json& value);
void flush_output();
// Says on stderr that a file was written, after what was printed before.
void say_written(const std::string& file);
// True where stdout is a terminal and what was printed last did not end its line.
bool has_open_line();

// Throws Error(kInvalidArgument) when the file `path` is one of those that are read, by another name or link too.
// `read` has files, and folders that stand for all files in them. `what` names the argument.
void require_none_of(const std::string& path, std::span<const std::string> read, const std::string& what);

}  // namespace heddle
