// How the gradient of an op is computed: calls of ordinary ops over named values, one after the other. It is data for those
// who differentiate (an autograd function, a test); engine and check know nothing of it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

// One call. The values that its arguments take have these names, where the differentiated op has an argument x:
//   x      the argument itself: an input, or an output that the op has written
//   dx     the gradient of x: given for an output, written by a call for an input
//   other  what a call writes and later ones read
// A packed weight is passed as a plain matrix. An attribute is the differentiated op's attribute of the same name, and
// otherwise its default. A call may be left out where nothing of what it writes is wanted.
struct GradientCall {
  std::string op;
  std::vector<std::pair<std::string, std::string>>
      values;  // {argument, value}; left out where the names are equal

  std::string_view value_of(std::string_view argument) const {
    for (const auto& [name, value] : values)
      if (name == argument) return value;
    return argument;
  }
};

}  // namespace heddle
