#include "heddle/text/jinja/functions.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>

namespace heddle::jinja {
namespace {

using Function = Value (*)(Budget&, Arguments&, const RenderOptions&);

Value raise_exception(Budget& budget, Arguments& arguments, const RenderOptions&) {
  fail(ErrorCode::kInvalidArgument, "the template refuses the conversation: {}",
       to_text(budget, arguments.at(0, "message")));
}

Value range(Budget& budget, Arguments& arguments, const RenderOptions&) {
  constexpr int64_t kMost = 100'000;  // as in Jinja's sandbox
  std::vector<int64_t> bounds;
  while (arguments.has_positional()) {
    const Value bound = arguments.take_first("a bound");
    require_defined(bound);
    require(bound.is_integer(), "range of {}; whole numbers are expected", describe(bound));
    bounds.push_back(bound.as_int());
  }
  arguments.finish();
  require(!bounds.empty() && bounds.size() <= 3, "range of {} numbers; 1 to 3 are expected", bounds.size());
  const int64_t begin = bounds.size() > 1 ? bounds[0] : 0, end = bounds.size() > 1 ? bounds[1] : bounds[0];
  const int64_t step = bounds.size() > 2 ? bounds[2] : 1;
  require(step != 0, "range with a step of 0");
  std::vector<Value> numbers;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    require(int64_t(numbers.size()) < kMost, "range of more than {} numbers", kMost);
    budget.spend(Budget::kItem);
    numbers.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return make_range({begin, end, step}, std::move(numbers));
}

// The items of dict(…): those of a dict or of pairs, and then those with names.
Dict::Items members(Budget& budget, Arguments& arguments) {
  Dict::Items items;
  if (arguments.has_positional()) {
    const Value base = arguments.take_first("a dict");
    if (base.is(Kind::kDict)) {
      items = base.as_dict().items;
    } else {
      for (const Value& pair : items_of(budget, base)) {
        const std::vector<Value> both = items_of(budget, pair);
        require(both.size() == 2, "a dict of {} with {} values; a key and its value are expected",
                describe(pair), both.size());
        set_item(budget, items, both[0], both[1]);
      }
    }
  }
  for (const auto& [key, value] : arguments.take_named()) set_item(budget, items, Value(key), value);
  budget.spend(2 * Budget::kItem * items.size());
  return items;
}

Value dict(Budget& budget, Arguments& arguments, const RenderOptions&) {
  return make_dict(members(budget, arguments));
}

Value make_namespace(Budget& budget, Arguments& arguments, const RenderOptions&) {
  auto made = std::make_shared<Namespace>();
  for (const auto& [key, value] : members(budget, arguments)) {
    if (!key.is(Kind::kString))
      fail(ErrorCode::kUnsupported, "{} is not supported as a name in a namespace", describe(key));
    made->set(key.as_string(), value);
  }
  return Value(std::move(made));
}

Value cycler(Budget&, Arguments& arguments, const RenderOptions&) {
  auto made = std::make_shared<Cycler>();
  made->items = arguments.take_positional();
  require(!made->items.empty(), "'cycler' takes the values that alternate");
  return Value(std::move(made));
}

Value joiner(Budget&, Arguments& arguments, const RenderOptions&) {
  auto made = std::make_shared<Cycler>();
  const Value* separator = arguments.find(0, "sep");
  made->items = {separator ? *separator : Value(", ")};
  made->is_joiner = true;
  return Value(std::move(made));
}

Value lipsum(Budget&, Arguments&, const RenderOptions&) {
  fail(ErrorCode::kUnsupported, "the function 'lipsum' is not supported: its text is random");
}

Value strftime_now(Budget& budget, Arguments& arguments, const RenderOptions& options) {
  const Value& given = arguments.at(0, "format");
  require(given.is(Kind::kString), "strftime_now of {}; a string is expected", describe(given));
  const std::string& format = given.as_string();
  constexpr size_t kLongest = 1000;
  require(format.size() <= kLongest && format.find('\0') == std::string::npos,
          "strftime_now with a format of {} bytes; {} are the most", format.size(), kLongest);
  // The other letters involve padding, zones or parts of seconds, which Python and C treat differently.
  constexpr std::string_view kKnown = "aAbBcdHIjmMpSUwWxXyY%";
  for (size_t i = format.find('%'); i != std::string::npos; i = format.find('%', i + 2)) {
    const char code = i + 1 < format.size() ? format[i + 1] : ' ';
    if (code == '-' && i + 2 < format.size() &&
        std::string_view("dHIjmMSyU").find(format[i + 2]) != std::string::npos) {
      continue;
    }
    if (kKnown.find(code) == std::string_view::npos) {
      fail(ErrorCode::kUnsupported, "strftime_now with %{} is not supported; {} are", code, kKnown);
    }
  }
  if (format.empty()) return Value("");
  std::tm now = {};
  if (options.now) {
    now = *options.now;
  } else {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    localtime_r(&seconds, &now);
  }
  budget.spend(format.size() * Budget::kItem);
  std::string text(format.size() * 32 + 1, '\0');
  text.resize(std::strftime(text.data(), text.size(), format.c_str(), &now));
  return Value(std::move(text));
}

const std::map<std::string_view, Function>& functions() {
  static const std::map<std::string_view, Function> all = {{"cycler", cycler},
                                                           {"dict", dict},
                                                           {"joiner", joiner},
                                                           {"lipsum", lipsum},
                                                           {"namespace", make_namespace},
                                                           {"raise_exception", raise_exception},
                                                           {"range", range},
                                                           {"strftime_now", strftime_now}};
  return all;
}

}  // namespace

bool is_function(std::string_view name) {
  return functions().contains(name);
}

Value call_function(Budget& budget, std::string_view name, Arguments& arguments,
                    const RenderOptions& options) {
  Value result = functions().at(name)(budget, arguments, options);
  arguments.finish();
  return result;
}

}  // namespace heddle::jinja
