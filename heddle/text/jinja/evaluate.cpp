// Evaluates expressions for the interpreter.
#include <algorithm>

#include <fmt/format.h>

#include "heddle/text/jinja/access.h"
#include "heddle/text/jinja/filters.h"
#include "heddle/text/jinja/functions.h"
#include "heddle/text/jinja/integer.h"
#include "heddle/text/jinja/interpreter_state.h"
#include "heddle/text/jinja/operators.h"
#include "heddle/text/jinja/tests.h"

namespace heddle::jinja {

Value Interpreter::eval(const Expr& expr, Scope& scope) {
  const Level level(*this, expr.line);
  switch (expr.kind) {
    case Expr::kLiteral:
      return expr.value;
    case Expr::kName:
      return eval_name(expr.name, scope);
    case Expr::kList:
    case Expr::kTuple:
    case Expr::kDict:
      return eval_container(expr, scope);
    case Expr::kAttribute:
      return eval_attribute(expr, scope);
    case Expr::kItem: {
      const Value value = eval(*expr.parts[0], scope);
      return item_of(budget_, value, eval(*expr.parts[1], scope));
    }
    case Expr::kSlice:
      return eval_slice(expr, scope);
    case Expr::kCall:
      return eval_call(expr, scope);
    case Expr::kFilter:
      return eval_filter(expr, scope, nullptr);
    case Expr::kTest: {
      const Value value = eval(*expr.parts[0], scope);
      Arguments arguments = eval_arguments(expr, scope);
      return Value(apply_test(budget_, expr.name, value, arguments));
    }
    case Expr::kUnary:
      return eval_unary(expr, scope);
    case Expr::kBinary: {
      const Value left = eval(*expr.parts[0], scope), right = eval(*expr.parts[1], scope);
      line_ = expr.line;
      return apply_binary(budget_, expr.name, left, right);
    }
    case Expr::kConcat:
      return eval_concat(expr, scope);
    case Expr::kCompare:
      return eval_compare(expr, scope);
    default:
      return eval_choice(expr, scope);
  }
}

const Value* Interpreter::find_variable(std::string_view name, const Scope& scope) const {
  for (const Scope* at = &scope; at; at = at->outer) {
    if (const Value* value = at->find(name)) return value;
  }
  const auto found =
      std::ranges::find(variables_, name, [](const auto& item) { return std::string_view(item.first); });
  return found == variables_.end() ? nullptr : &found->second;
}

Value Interpreter::eval_name(std::string_view name, const Scope& scope) const {
  if (const Value* found = find_variable(name, scope)) return *found;
  if (is_function(name) || name == "self")
    return Value(std::make_shared<const Callable>(Callable{.name = std::string(name)}));
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

// `self` has the blocks of the template.
Value Interpreter::eval_attribute(const Expr& expr, Scope& scope) {
  const Expr& holder = *expr.parts[0];
  if (holder.kind == Expr::kName && holder.name == "self" && !find_variable("self", scope)) {
    const auto block = blocks_.find(expr.name);
    if (block == blocks_.end()) return Value::undefined(fmt::format("there is no block '{}'", expr.name));
    return Value(std::make_shared<const Callable>(Callable{.name = expr.name, .block = block->second}));
  }
  return attribute_of(eval(holder, scope), expr.name);
}

Value Interpreter::eval_container(const Expr& expr, Scope& scope) {
  budget_.spend(Budget::kItem * expr.parts.size());
  if (expr.kind != Expr::kDict) {
    std::vector<Value> items;
    for (const ExprPtr& part : expr.parts) items.push_back(eval(*part, scope));
    return make_sequence(std::move(items), expr.kind == Expr::kTuple ? Sequence::kTuple : Sequence::kList);
  }
  Dict::Items items;
  for (size_t i = 0; i < expr.parts.size(); i += 2) {
    const Value key = eval(*expr.parts[i], scope);
    set_item(budget_, items, key, eval(*expr.parts[i + 1], scope));
  }
  return make_dict(std::move(items));
}

Value Interpreter::eval_slice(const Expr& expr, Scope& scope) {
  const Value value = eval(*expr.parts[0], scope);
  const auto bound = [&](const ExprPtr& part) -> std::optional<int64_t> {
    if (!part) return std::nullopt;
    const Value index = eval(*part, scope);
    if (index.is(Kind::kNone)) return std::nullopt;
    if (index.is(Kind::kBigInt))
      return is_negative(index) ? INT64_MIN / 2 : INT64_MAX / 2;  // beyond all items
    require(index.is_integer(), "a slice with {}; a whole number is expected", describe(index));
    return index.as_int();
  };
  Slice slice;
  slice.begin = bound(expr.parts[1]);
  slice.end = bound(expr.parts[2]);
  slice.step = bound(expr.parts[3]);
  return slice_of(budget_, value, slice);
}

// `input` replaces the part that a filter block lacks.
Value Interpreter::eval_filter(const Expr& expr, Scope& scope, const Value* input) {
  const Level level(*this, expr.line);
  Value value;
  if (!expr.parts[0]) {
    value = *input;
  } else {
    value = expr.parts[0]->kind == Expr::kFilter ? eval_filter(*expr.parts[0], scope, input)
                                                 : eval(*expr.parts[0], scope);
  }
  Arguments arguments = eval_arguments(expr, scope);
  line_ = expr.line;
  return apply_filter(budget_, expr.name, value, arguments);
}

Value Interpreter::eval_unary(const Expr& expr, Scope& scope) {
  const Value value = eval(*expr.parts[0], scope);
  return expr.name == "not" ? Value(!truth(value)) : apply_sign(expr.name, value);
}

Value Interpreter::eval_concat(const Expr& expr, Scope& scope) {
  std::string text;
  for (const ExprPtr& part : expr.parts) text += to_text(budget_, eval(*part, scope));
  return Value(std::move(text));
}

// As in Python: a < b < c holds if both comparisons do, and stops at the first that fails.
Value Interpreter::eval_compare(const Expr& expr, Scope& scope) {
  Value left = eval(*expr.parts[0], scope);
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    const std::string_view operation = expr.operators[i];
    Value right = eval(*expr.parts[i + 1], scope);
    line_ = expr.line;
    bool holds = false;
    if (operation == "==" || operation == "!=") {
      holds = equal(budget_, left, right) == (operation == "==");
    } else if (operation == "in" || operation == "notin") {
      holds = contains(budget_, right, left) == (operation == "in");
    } else if (const auto order = compare(budget_, left, right, operation)) {
      holds = operation[0] == '<' ? *order < 0 : *order > 0;
      holds |= operation.size() == 2 && *order == 0;
    }
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

// and, or, if
Value Interpreter::eval_choice(const Expr& expr, Scope& scope) {
  if (expr.kind == Expr::kIf) {
    if (truth(eval(*expr.parts[1], scope))) return eval(*expr.parts[0], scope);
    return expr.parts[2] ? eval(*expr.parts[2], scope)
                         : Value::undefined("an 'if' without 'else' gave no value");
  }
  Value left = eval(*expr.parts[0], scope);
  return truth(left) == (expr.kind == Expr::kOr) ? left : eval(*expr.parts[1], scope);
}

}  // namespace heddle::jinja
