// Filters by the type that they work on; filters.h has all of them by name.
#pragma once

#include <map>
#include <string_view>

#include "heddle/text/jinja/arguments.h"

namespace heddle::jinja {

using Filter = Value (*)(Budget& budget, const Value& value, Arguments& arguments);
using FilterTable = std::map<std::string_view, Filter>;

const FilterTable& text_filters();
const FilterTable& layout_filters();  // they give texts lines and widths
const FilterTable& markup_filters();  // they make texts fit for HTML or an address
const FilterTable& list_filters();
const FilterTable& choice_filters();  // they choose items of lists, or filter each
const FilterTable& number_filters();

}  // namespace heddle::jinja
