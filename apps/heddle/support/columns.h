// Text that fits the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle {

// Columns of the terminal on stdout; 80 where it is none. At least 40.
size_t output_columns();

// Breaks lines of text at spaces, so that none has more than `columns` where that is possible. What is broken off begins with
// `indent` spaces.
std::string wrapped(std::string_view text, size_t columns, size_t indent = 0);

// Joins lines of prose that a sentence goes on in, so that `wrapped` breaks them for the columns that there are.
std::string filled(std::string_view text);

// A line of a list: the name in a column of its own, then the text, broken to fit the terminal.
std::string listed(std::string_view name, std::string_view text, size_t name_columns = 12);

}  // namespace heddle
