// Describes how to compute the gradient of an op: a list of calls of ordinary ops over named values. It is
// data for code that differentiates (an autograd function, a test); engine and check know nothing of it.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

// One call. Where the differentiated op has an argument x, the call's values have these names:
//   x      the argument itself: an input, or an output that the op has written
//   dx     the gradient of x: given for an output, written by a call for an input
//   other  a value that one call writes and later ones read
//   dx^T   a matrix transposed, for an argument that takes a matrix either way
// A packed weight is passed as a plain matrix. An attribute takes the differentiated op's attribute of the
// same name, and otherwise its default. A call may be left out if no value that it writes is wanted. Names are literals.
struct GradientCall {
  std::string_view op;
  std::vector<std::pair<std::string_view, std::string_view>>
      values;  // {argument, value}; left out when the names are equal

  std::string_view value_of(std::string_view argument) const {
    for (const auto& [name, value] : values)
      if (name == argument) return value;
    return argument;
  }
};

}  // namespace heddle
