// The values of templates. They behave like the same values in Python, from which Jinja comes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/text/jinja/budget.h"

namespace heddle::jinja {

struct Sequence;
struct Dict;
struct Namespace;
struct Callable;
struct Loop;
struct Cycler;

enum class Kind {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kBigInt,
  kFloat,
  kString,
  kSequence,
  kDict,
  kNamespace,
  kCallable,
  kLoop,
  kCycler
};

// Cheap to copy: texts and containers are shared, and only namespaces, loops and cyclers ever change.
class Value {
 public:
  Value() : data_(Undefined{}) {}
  explicit Value(bool value) : data_(value) {}
  explicit Value(int64_t value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(std::string text) : data_(Text{std::make_shared<const std::string>(std::move(text))}) {}
  explicit Value(std::string_view text) : Value(std::string(text)) {}
  explicit Value(const char* text) : Value(std::string(text)) {}
  explicit Value(std::shared_ptr<const Sequence> value) : data_(std::move(value)) {}
  explicit Value(std::shared_ptr<const Dict> value) : data_(std::move(value)) {}
  explicit Value(std::shared_ptr<Namespace> value) : data_(std::move(value)) {}
  explicit Value(std::shared_ptr<const Callable> value) : data_(std::move(value)) {}
  explicit Value(std::shared_ptr<Loop> value) : data_(std::move(value)) {}
  explicit Value(std::shared_ptr<Cycler> value) : data_(std::move(value)) {}
  static Value none() { return Value(None{}); }
  // `why` is the message of an error from using it.
  static Value undefined(std::string why) {
    return Value(Undefined{std::make_shared<const std::string>(std::move(why))});
  }
  // A whole number beyond 64 bits; integer.h makes whole numbers of any size.
  static Value big(std::string digits) {
    return Value(Big{std::make_shared<const std::string>(std::move(digits))});
  }

  Kind kind() const { return Kind(data_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_number() const { return is(Kind::kFloat) || is_whole(); }
  bool is_whole() const { return is_integer() || is(Kind::kBigInt); }
  bool is_integer() const { return is(Kind::kInt) || is(Kind::kBool); }  // it fits in 64 bits

  // Each works only for a value of that kind.
  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const { return is(Kind::kBool) ? int64_t{as_bool()} : std::get<int64_t>(data_); }
  const std::string& as_digits() const { return *std::get<Big>(data_).digits; }
  double as_float() const;  // works for any number
  const std::string& as_string() const { return *std::get<Text>(data_).text; }
  const Sequence& as_sequence() const { return *std::get<std::shared_ptr<const Sequence>>(data_); }
  const Dict& as_dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Namespace& as_namespace() const { return *std::get<std::shared_ptr<Namespace>>(data_); }
  const Callable& as_callable() const { return *std::get<std::shared_ptr<const Callable>>(data_); }
  Loop& as_loop() const { return *std::get<std::shared_ptr<Loop>>(data_); }
  Cycler& as_cycler() const { return *std::get<std::shared_ptr<Cycler>>(data_); }
  std::string_view why_undefined() const {
    const auto& why = std::get<Undefined>(data_).why;
    return why ? std::string_view(*why) : "the value is undefined";
  }

  // Marks a text that went through `safe` or `escape`: Python's Markup. An operator escapes what it joins to it.
  Value marked_safe() const;
  bool is_safe() const { return is(Kind::kString) && std::get<Text>(data_).safe; }

 private:
  struct Undefined {
    std::shared_ptr<const std::string> why;
  };
  struct None {};
  struct Big {
    std::shared_ptr<const std::string> digits;
  };
  struct Text {
    std::shared_ptr<const std::string> text;
    bool safe = false;
  };
  // In the order of Kind.
  using Data =
      std::variant<Undefined, None, bool, int64_t, Big, double, Text, std::shared_ptr<const Sequence>,
                   std::shared_ptr<const Dict>, std::shared_ptr<Namespace>, std::shared_ptr<const Callable>,
                   std::shared_ptr<Loop>, std::shared_ptr<Cycler>>;
  explicit Value(Undefined value) : data_(std::move(value)) {}
  explicit Value(None value) : data_(value) {}
  explicit Value(Big value) : data_(std::move(value)) {}

  Data data_;
};

// The depth of a value, and whether it contains a namespace: a namespace that contains itself would never be
// freed.
struct Nesting {
  int depth = 0;
  bool holds_reference = false;
};

struct Sequence {
  // A generator is the result of map, select and similar filters: it has no length, is always true, and can
  // be used once. Keys, values and items are the views of a dict.
  enum Flavor { kList, kTuple, kRange, kKeys, kValues, kItems, kGenerator };
  struct Range {
    int64_t begin = 0, end = 0, step = 1;
  };
  Flavor flavor = kList;
  std::vector<Value> items;
  Nesting nesting;
  Range range = {};
  bool is_group = false;  // a tuple of `groupby`, whose items have the names grouper and list
  mutable bool used_up = false;

  bool is_list() const { return flavor <= kTuple; }
  bool is_view() const { return flavor >= kKeys && flavor <= kItems; }
};

// In the order of insertion. Keys are values that Python can hash.
struct Dict {
  using Items = std::vector<std::pair<Value, Value>>;
  Items items;
  Nesting nesting;
  const Value* find(std::string_view key) const;
  // Throws if Python cannot hash the key.
  const Value* find(Budget& budget, const Value& key) const;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> items;
  const Value* find(std::string_view key) const;
  void set(std::string_view key, const Value& value);
};

struct MacroStatement;
struct Statement;
struct Scope;

// A function, a macro with the scope that it was made in, a block, or a method with its object.
struct Callable {
  std::string name = {};
  Value self = {};
  const MacroStatement* macro = nullptr;
  Scope* scope = nullptr;
  const Statement* block = nullptr;
};

// The variable `loop`. A recursive loop knows its statement and the scope around it.
struct Loop {
  std::vector<Value> items = {};
  int64_t index0 = 0;
  int64_t depth0 = 0;
  std::optional<Value> last_changed = {};
  const Statement* recursive = nullptr;
  Scope* scope = nullptr;
};

// The result of `cycler` or `joiner`.
struct Cycler {
  std::vector<Value> items;
  size_t at = 0;
  bool is_joiner = false;  // gives an empty text first, then items[0]
};

// Throw if the values are nested too deeply.
Value make_sequence(std::vector<Value> items, Sequence::Flavor flavor = Sequence::kList);
Value make_range(const Sequence::Range& range, std::vector<Value> items);
Value make_group(const Value& grouper, const Value& list);
Value make_dict(Dict::Items items);
// Sets a key as Python's dict does: an existing key keeps its place.
void set_item(std::vector<std::pair<std::string, Value>>& items, std::string_view key, const Value& value);
void set_item(Budget& budget, Dict::Items& items, const Value& key, const Value& value);

// Text such as "a string" or "none", for messages.
std::string describe(const Value& value);
// Operations call this before they use a value; it throws for an undefined one.
void require_defined(const Value& value);
// Throws for a list, a dict and what contains one: Python has no hash for them.
void require_hashable(const Value& value);

bool truth(const Value& value);
// Walks through values spend the budget, because shared parts make values larger than their memory.
bool equal(Budget& budget, const Value& a, const Value& b);
// Negative, 0 or positive; nothing if Python has no order for the two, as with a NaN.
std::optional<int> compare(Budget& budget, const Value& a, const Value& b, std::string_view operation);
bool contains(Budget& budget, const Value& container, const Value& item);

// The items that a `for` runs over; uses up a generator. Throws if the items have no order.
std::vector<Value> items_of(Budget& budget, const Value& value);
// str() and repr(), in value_text.cpp.
std::string to_text(Budget& budget, const Value& value);
std::string to_repr(Budget& budget, const Value& value);

}  // namespace heddle::jinja
