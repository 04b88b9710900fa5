// The values of templates. They mean what the same values mean in Python, where Jinja comes from.
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
struct MacroStatement;

enum class Kind {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kSequence,
  kDict,
  kNamespace,
  kCallable,
  kLoop
};

// Cheap to copy: texts and containers are shared, and only namespaces and loops ever change.
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
  static Value none() { return Value(None{}); }
  // `why` is what an error says that comes of using it.
  static Value undefined(std::string why) {
    return Value(Undefined{std::make_shared<const std::string>(std::move(why))});
  }

  Kind kind() const { return Kind(data_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_number() const { return is(Kind::kInt) || is(Kind::kFloat) || is(Kind::kBool); }
  bool is_integer() const { return is(Kind::kInt) || is(Kind::kBool); }

  // Only for a value of that kind.
  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const { return is(Kind::kBool) ? int64_t{as_bool()} : std::get<int64_t>(data_); }
  double as_float() const { return is(Kind::kFloat) ? std::get<double>(data_) : double(as_int()); }
  const std::string& as_string() const { return *std::get<Text>(data_).text; }
  const Sequence& as_sequence() const { return *std::get<std::shared_ptr<const Sequence>>(data_); }
  const Dict& as_dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Namespace& as_namespace() const { return *std::get<std::shared_ptr<Namespace>>(data_); }
  const Callable& as_callable() const { return *std::get<std::shared_ptr<const Callable>>(data_); }
  Loop& as_loop() const { return *std::get<std::shared_ptr<Loop>>(data_); }
  std::string_view why_undefined() const {
    const auto& why = std::get<Undefined>(data_).why;
    return why ? std::string_view(*why) : "the value is undefined";
  }

  // The text went through `safe`. Python would escape what is joined to it by an operator.
  Value marked_safe() const;
  bool is_safe() const { return is(Kind::kString) && std::get<Text>(data_).safe; }

 private:
  struct Undefined {
    std::shared_ptr<const std::string> why;
  };
  struct None {};
  struct Text {
    std::shared_ptr<const std::string> text;
    bool safe = false;
  };
  // In the order of Kind.
  using Data = std::variant<Undefined, None, bool, int64_t, double, Text, std::shared_ptr<const Sequence>,
                            std::shared_ptr<const Dict>, std::shared_ptr<Namespace>,
                            std::shared_ptr<const Callable>, std::shared_ptr<Loop>>;
  explicit Value(Undefined value) : data_(std::move(value)) {}
  explicit Value(None value) : data_(value) {}

  Data data_;
};

// How far down a value reaches, and whether a namespace is inside: one that held itself would never be freed.
struct Nesting {
  int depth = 0;
  bool holds_reference = false;
};

struct Sequence {
  // A generator is what map, select and their kind give: it has no length, is always true, and is used up once.
  enum Flavor { kList, kTuple, kView, kRange, kGenerator };
  Flavor flavor = kList;
  std::vector<Value> items;
  Nesting nesting;
  mutable bool used_up = false;
};

// In the order of insertion. Keys are strings.
struct Dict {
  std::vector<std::pair<std::string, Value>> items;
  Nesting nesting;
  const Value* find(std::string_view key) const;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> items;
  const Value* find(std::string_view key) const;
  void set(std::string_view key, const Value& value);
};

// A function, a macro, or a method with its object.
struct Callable {
  std::string name;
  Value self;
  const MacroStatement* macro = nullptr;
};

// The variable `loop`.
struct Loop {
  std::vector<Value> items;
  int64_t index0 = 0;
  std::optional<Value> last_changed;
};

// Throw where the values reach down too far.
Value make_sequence(std::vector<Value> items, Sequence::Flavor flavor = Sequence::kList);
Value make_dict(std::vector<std::pair<std::string, Value>> items);
// Sets a key as Python's dict does: a known one keeps its place.
void set_item(std::vector<std::pair<std::string, Value>>& items, std::string_view key, const Value& value);

// "a string", "none" and so on, for messages.
std::string describe(const Value& value);
// What an operation asks of a value before it uses it; throws for an undefined one.
void require_defined(const Value& value);

bool truth(const Value& value);
// What walks through values spends: shared parts make them larger than what is in memory.
bool equal(Budget& budget, const Value& a, const Value& b);
// Negative, 0 or positive; nothing where Python has no order for the two, such as with a NaN.
std::optional<int> compare(Budget& budget, const Value& a, const Value& b, std::string_view operation);
bool contains(Budget& budget, const Value& container, const Value& item);

// What a `for` runs over; uses up a generator. Throws where there is no order of items.
std::vector<Value> items_of(Budget& budget, const Value& value);
// str() and repr().
std::string to_text(Budget& budget, const Value& value);
std::string to_repr(Budget& budget, const Value& value);

}  // namespace heddle::jinja
