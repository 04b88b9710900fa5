#include "heddle/text/jinja/json.h"

#include <algorithm>
#include <cmath>

#include "heddle/text/jinja/integer.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

// Leaves room for what a template puts around it, below the limit for values.
constexpr int kMaxJsonDepth = 90;

Value read(const Json& json, int depth) {
  require(depth < kMaxJsonDepth, "JSON has more than {} levels", kMaxJsonDepth);
  if (json.is_bool()) return Value(json.as_bool());
  if (json.is_integer()) {
    const std::optional<int64_t> integer = json.to_int();
    return integer ? Value(*integer) : integer_from_digits(json.integer_digits());
  }
  if (json.is_number()) return Value(json.as_number());
  if (json.is_string()) {
    require(is_valid_utf8(json.as_string()), "a text is not UTF-8");
    return Value(json.as_string());
  }
  if (json.is_array()) {
    std::vector<Value> items;
    for (const Json& item : json.items()) items.push_back(read(item, depth + 1));
    return make_sequence(std::move(items));
  }
  if (json.is_object()) {
    Dict::Items items;
    for (const auto& [key, item] : json.members()) {
      require(is_valid_utf8(key), "a key is not UTF-8");
      items.emplace_back(Value(key), read(item, depth + 1));
    }
    return make_dict(std::move(items));
  }
  return Value::none();
}

std::string number_text(double number) {
  if (std::isfinite(number)) return repr(number);
  return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
}

class Writer {
 public:
  Writer(Budget& budget, Arguments& arguments)
      : budget_(budget), ascii_(arguments.truth(0, "ensure_ascii", false)) {
    const Value* indent = arguments.find(1, "indent");
    const Value* separators = arguments.find(2, "separators");
    sort_ = arguments.truth(3, "sort_keys", false);
    if (indent && !indent->is(Kind::kNone)) {
      require(indent->is(Kind::kString) || indent->is_integer(), "tojson with an indent of {}",
              describe(*indent));
      constexpr int64_t kMost = 100;
      indent_ = indent->is(Kind::kString)
                    ? indent->as_string()
                    : std::string(size_t(std::clamp<int64_t>(indent->as_int(), 0, kMost)), ' ');
      between_ = ",";
    }
    if (!separators || separators->is(Kind::kNone)) return;
    const auto both = items_of(budget, *separators);
    require(both.size() == 2 && both[0].is(Kind::kString) && both[1].is(Kind::kString),
            "tojson with separators that are not two strings");
    between_ = both[0].as_string();
    colon_ = both[1].as_string();
  }

  std::string run(const Value& value) {
    write(value, 1);
    return std::move(out_);
  }

 private:
  void write(const Value& value, size_t depth);
  void write_string(std::string_view text);
  void write_items(const std::vector<Value>& items, size_t depth);
  void write_members(Dict::Items items, size_t depth);
  std::string key_text(const Value& key) const;
  void begin_line(size_t depth);

  Budget& budget_;
  bool ascii_;
  bool sort_ = false;
  std::optional<std::string> indent_;
  std::string between_ = ", ", colon_ = ": ";
  std::string out_;
};

void Writer::begin_line(size_t depth) {
  if (!indent_) return;
  budget_.spend(1 + depth * indent_->size());
  out_ += '\n';
  for (size_t i = 0; i < depth; ++i) out_ += *indent_;
}

void Writer::write(const Value& value, size_t depth) {
  budget_.spend(Budget::kItem + between_.size() + colon_.size());
  switch (value.kind()) {
    case Kind::kNone:
      out_ += "null";
      return;
    case Kind::kBool:
      out_ += value.as_bool() ? "true" : "false";
      return;
    case Kind::kInt:
    case Kind::kBigInt:
      out_ += digits_of(value);
      budget_.spend(value.is(Kind::kBigInt) ? value.as_digits().size() : 0);
      return;
    case Kind::kFloat:
      out_ += number_text(value.as_float());
      return;
    case Kind::kString:
      return write_string(value.as_string());
    case Kind::kDict:
      return write_members(value.as_dict().items, depth);
    case Kind::kSequence:
      if (value.as_sequence().is_list()) return write_items(value.as_sequence().items, depth);
      break;
    default:
      break;
  }
  fail(ErrorCode::kInvalidArgument, "{} cannot be written as JSON", describe(value));
}

void Writer::write_string(std::string_view text) {
  constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
  budget_.spend(text.size());
  out_ += '"';
  for (std::string_view character : characters(text)) {
    const uint32_t c = first_char(character).code_point;
    const size_t escaped = c < 0x80 ? kEscaped.find(char(c)) : std::string_view::npos;
    if (escaped != std::string_view::npos) {
      out_ += '\\';
      out_ += kLetters[escaped];
    } else if (c < ' ' || (ascii_ && c > '~' && c < 0x10000)) {
      out_ += fmt::format("\\u{:04x}", c);
    } else if (ascii_ && c >= 0x10000) {
      out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + (c & 0x3FF));
    } else {
      out_ += character;
    }
  }
  out_ += '"';
}

void Writer::write_items(const std::vector<Value>& items, size_t depth) {
  out_ += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out_ += between_;
    begin_line(depth);
    write(items[i], depth + 1);
  }
  if (!items.empty()) begin_line(depth - 1);
  out_ += ']';
}

// Python writes the keys that are numbers, booleans or none as strings.
std::string Writer::key_text(const Value& key) const {
  switch (key.kind()) {
    case Kind::kString:
      return key.as_string();
    case Kind::kNone:
      return "null";
    case Kind::kBool:
      return key.as_bool() ? "true" : "false";
    case Kind::kInt:
    case Kind::kBigInt:
      return digits_of(key);
    case Kind::kFloat:
      return number_text(key.as_float());
    default:
      fail(ErrorCode::kInvalidArgument, "{} cannot be a key of JSON", describe(key));
  }
}

void Writer::write_members(Dict::Items items, size_t depth) {
  if (sort_) {
    std::ranges::stable_sort(items, [&](const auto& a, const auto& b) {
      return compare(budget_, a.first, b.first, "tojson with sort_keys") < 0;
    });
  }
  out_ += '{';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out_ += between_;
    begin_line(depth);
    write_string(key_text(items[i].first));
    out_ += colon_;
    write(items[i].second, depth + 1);
  }
  if (!items.empty()) begin_line(depth - 1);
  out_ += '}';
}

}  // namespace

Value from_json(const Json& json) {
  return read(json, 0);
}

Value to_json(Budget& budget, const Value& value, Arguments& arguments) {
  return Value(Writer(budget, arguments).run(value));
}

}  // namespace heddle::jinja
