#include "heddle/text/jinja/interpreter.h"

#include <algorithm>

#include "heddle/text/jinja/access.h"
#include "heddle/text/jinja/arguments.h"
#include "heddle/text/jinja/filters.h"
#include "heddle/text/jinja/functions.h"
#include "heddle/text/jinja/methods.h"
#include "heddle/text/jinja/operators.h"
#include "heddle/text/jinja/tests.h"

namespace heddle::jinja {
namespace {

constexpr int kMaxDepth = 600;  // of nested nodes, also through macros; the stack can hold this many

// The names that a body sets. A macro sees those of the whole template and its own.
struct Scope {
  const Scope* outer = nullptr;
  std::vector<std::pair<std::string_view, Value>> names;

  const Value* find(std::string_view name) const {
    const auto found = std::ranges::find(names, name, [](const auto& item) { return item.first; });
    return found == names.end() ? nullptr : &found->second;
  }
  void set(std::string_view name, Value value) {
    const auto found = std::ranges::find(names, name, [](const auto& item) { return item.first; });
    if (found == names.end()) {
      names.emplace_back(name, std::move(value));
    } else {
      found->second = std::move(value);
    }
  }
};

class Interpreter {
 public:
  Interpreter(const Variables& variables, const RenderOptions& options)
      : variables_(variables), options_(options), budget_(options.budget) {}

  std::string run(const Body& body) {
    try {
      std::string out;
      run_body(body, root_, out);
      return out;
    } catch (const Error& error) {
      fail(error.code(), "line {}: {}", line_, error.what());
    }
  }

 private:
  enum class Jump { kNone, kBreak, kContinue };

  // Counts a level of nodes, and records the line for an error.
  class Level {
   public:
    Level(Interpreter& self, int line) : self_(self) {
      self.line_ = line;
      self.budget_.spend(Budget::kNode);
      if (++self.depth_ > kMaxDepth) {
        fail(ErrorCode::kUnsupported, "{} levels of calls and blocks are the most; does a macro call itself?",
             kMaxDepth);
      }
    }
    ~Level() { --self_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Interpreter& self_;
  };

  Jump run_body(const Body& body, Scope& scope, std::string& out);
  Jump run_statement(const Statement& statement, Scope& scope, std::string& out);
  Jump run_if(const Statement& statement, Scope& scope, std::string& out);
  Jump run_for(const Statement& statement, Scope& scope, std::string& out);
  std::vector<Value> loop_items(const Statement& statement, Scope& scope);
  Value run_block(const Statement& statement, Scope& scope);
  void run_with(const Statement& statement, Scope& scope, std::string& out);
  void emit(std::string_view text, std::string& out);
  void assign(const Target& target, const Value& value, Scope& scope);

  Value eval(const Expr& expr, Scope& scope);
  Value eval_name(std::string_view name, const Scope& scope) const;
  Value eval_container(const Expr& expr, Scope& scope);
  Value eval_slice(const Expr& expr, Scope& scope);
  Value eval_call(const Expr& expr, Scope& scope);
  Value eval_filter(const Expr& expr, Scope& scope, const Value* input);
  Value eval_unary(const Expr& expr, Scope& scope);
  Value eval_concat(const Expr& expr, Scope& scope);
  Value eval_compare(const Expr& expr, Scope& scope);
  Value eval_choice(const Expr& expr, Scope& scope);
  Arguments eval_arguments(const Expr& expr, Scope& scope);
  Value call_macro(const MacroStatement& macro, Arguments& arguments);

  const Variables& variables_;
  const RenderOptions& options_;
  Budget budget_;
  Scope root_;
  int line_ = 1;
  int depth_ = 0;
};

void Interpreter::emit(std::string_view text, std::string& out) {
  budget_.spend(text.size());
  out += text;
}

Interpreter::Jump Interpreter::run_body(const Body& body, Scope& scope, std::string& out) {
  for (const auto& statement : body) {
    const Jump jump = run_statement(*statement, scope, out);
    if (jump != Jump::kNone) return jump;
  }
  return Jump::kNone;
}

Interpreter::Jump Interpreter::run_statement(const Statement& statement, Scope& scope, std::string& out) {
  const Level level(*this, statement.line);
  switch (statement.kind) {
    case Statement::kText:
      emit(statement.text, out);
      break;
    case Statement::kOutput:
      emit(to_text(budget_, eval(*statement.expr, scope)), out);
      break;
    case Statement::kIf:
      return run_if(statement, scope, out);
    case Statement::kFor:
      return run_for(statement, scope, out);
    case Statement::kSet:
      assign(statement.target, eval(*statement.expr, scope), scope);
      break;
    case Statement::kSetBlock:
      assign(statement.target, run_block(statement, scope), scope);
      break;
    case Statement::kFilter:
      emit(to_text(budget_, run_block(statement, scope)), out);
      break;
    case Statement::kMacro: {
      const MacroStatement& macro = statement.macro;
      scope.set(macro.name,
                Value(std::make_shared<const Callable>(Callable{.name = macro.name, .macro = &macro})));
      break;
    }
    case Statement::kWith:
      run_with(statement, scope, out);
      break;
    case Statement::kScope: {
      Scope inner{.outer = &scope};
      run_body(statement.body, inner, out);
      break;
    }
    case Statement::kBreak:
      return Jump::kBreak;
    case Statement::kContinue:
      return Jump::kContinue;
  }
  return Jump::kNone;
}

Interpreter::Jump Interpreter::run_if(const Statement& statement, Scope& scope, std::string& out) {
  for (const Statement::Branch& branch : statement.branches) {
    if (truth(eval(*branch.condition, scope))) return run_body(branch.body, scope, out);
  }
  return run_body(statement.orelse, scope, out);
}

std::vector<Value> Interpreter::loop_items(const Statement& statement, Scope& scope) {
  std::vector<Value> items = items_of(budget_, eval(*statement.expr, scope));
  if (!statement.condition) return items;
  std::vector<Value> kept;
  for (Value& item : items) {
    Scope inner{.outer = &scope};
    assign(statement.target, item, inner);
    if (truth(eval(*statement.condition, inner))) kept.push_back(std::move(item));
  }
  return kept;
}

// As in Jinja: `else` runs unless the body was completed at least once.
Interpreter::Jump Interpreter::run_for(const Statement& statement, Scope& scope, std::string& out) {
  const auto loop = std::make_shared<Loop>(Loop{.items = loop_items(statement, scope)});
  bool came_to_end = false;
  for (size_t i = 0; i < loop->items.size(); ++i) {
    loop->index0 = int64_t(i);
    Scope inner{.outer = &scope};
    inner.set("loop", Value(loop));
    assign(statement.target, loop->items[i], inner);
    const Jump jump = run_body(statement.body, inner, out);
    if (jump == Jump::kBreak) break;
    came_to_end |= jump == Jump::kNone;
  }
  if (came_to_end) return Jump::kNone;
  Scope inner{.outer = &scope};
  return run_body(statement.orelse, inner, out);
}

// Renders a body and applies the filters, if there are any.
Value Interpreter::run_block(const Statement& statement, Scope& scope) {
  std::string text;
  Scope inner{.outer = &scope};
  run_body(statement.body, inner, text);
  const Value made(std::move(text));
  return statement.expr ? eval_filter(*statement.expr, scope, &made) : made;
}

// Values are evaluated in the enclosing scope.
void Interpreter::run_with(const Statement& statement, Scope& scope, std::string& out) {
  Scope inner{.outer = &scope};
  std::vector<Value> values;
  for (const auto& assignment : statement.assignments) values.push_back(eval(*assignment.expr, scope));
  for (size_t i = 0; i < values.size(); ++i) assign(statement.assignments[i].target, values[i], inner);
  run_body(statement.body, inner, out);
}

void Interpreter::assign(const Target& target, const Value& value, Scope& scope) {
  if (!target.parts.empty()) {
    const std::vector<Value> items = items_of(budget_, value);
    require(items.size() == target.parts.size(), "{} values for {} names", items.size(), target.parts.size());
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i], scope);
  } else if (target.attribute.empty()) {
    scope.set(target.name, value);
  } else {
    const Value holder = eval_name(target.name, scope);
    require(holder.is(Kind::kNamespace), "'{}' is {}; only attributes of a namespace can be set", target.name,
            describe(holder));
    holder.as_namespace().set(target.attribute, value);
  }
}

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
      return attribute_of(eval(*expr.parts[0], scope), expr.name);
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

Value Interpreter::eval_name(std::string_view name, const Scope& scope) const {
  for (const Scope* at = &scope; at; at = at->outer) {
    if (const Value* value = at->find(name)) return *value;
  }
  const auto found =
      std::ranges::find(variables_, name, [](const auto& item) { return std::string_view(item.first); });
  if (found != variables_.end()) return found->second;
  if (is_function(name)) return Value(std::make_shared<const Callable>(Callable{.name = std::string(name)}));
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

Value Interpreter::eval_container(const Expr& expr, Scope& scope) {
  budget_.spend(Budget::kItem * expr.parts.size());
  if (expr.kind != Expr::kDict) {
    std::vector<Value> items;
    for (const ExprPtr& part : expr.parts) items.push_back(eval(*part, scope));
    return make_sequence(std::move(items), expr.kind == Expr::kTuple ? Sequence::kTuple : Sequence::kList);
  }
  std::vector<std::pair<std::string, Value>> items;
  for (size_t i = 0; i < expr.parts.size(); i += 2) {
    const Value key = eval(*expr.parts[i], scope);
    if (!key.is(Kind::kString))
      fail(ErrorCode::kUnsupported, "a key of a dict is {}; only strings are supported", describe(key));
    set_item(items, key.as_string(), eval(*expr.parts[i + 1], scope));
  }
  return make_dict(std::move(items));
}

Value Interpreter::eval_slice(const Expr& expr, Scope& scope) {
  const Value value = eval(*expr.parts[0], scope);
  const auto bound = [&](const ExprPtr& part) -> std::optional<int64_t> {
    if (!part) return std::nullopt;
    const Value index = eval(*part, scope);
    if (index.is(Kind::kNone)) return std::nullopt;
    require(index.is_integer(), "a slice with {}; a whole number is expected", describe(index));
    return index.as_int();
  };
  Slice slice;
  slice.begin = bound(expr.parts[1]);
  slice.end = bound(expr.parts[2]);
  slice.step = bound(expr.parts[3]);
  return slice_of(budget_, value, slice);
}

Value Interpreter::eval_call(const Expr& expr, Scope& scope) {
  const Value callee = eval(*expr.parts[0], scope);
  line_ = expr.line;
  require_defined(callee);
  require(callee.is(Kind::kCallable), "{} is called; a macro, a function or a method is expected",
          describe(callee));
  const Callable& callable = callee.as_callable();
  Arguments arguments = eval_arguments(expr, scope);
  line_ = expr.line;
  if (callable.macro) return call_macro(*callable.macro, arguments);
  if (!callable.self.is(Kind::kUndefined)) return call_method(budget_, callable, arguments);
  return call_function(budget_, callable.name, arguments, options_);
}

Arguments Interpreter::eval_arguments(const Expr& expr, Scope& scope) {
  const size_t first_named = expr.parts.size() - expr.keywords.size();
  std::vector<Value> positional;
  Arguments::Named named;
  for (size_t i = 1; i < expr.parts.size(); ++i) {
    Value value = eval(*expr.parts[i], scope);
    if (i < first_named) {
      positional.push_back(std::move(value));
    } else {
      named.emplace_back(expr.keywords[i - first_named], std::move(value));
    }
  }
  return Arguments(std::move(positional), std::move(named));
}

Value Interpreter::call_macro(const MacroStatement& macro, Arguments& arguments) {
  Scope scope{.outer = &root_};
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& [name, fallback] = macro.parameters[i];
    if (const Value* given = arguments.find(i, name)) {
      scope.set(name, *given);
    } else {
      scope.set(name, fallback ? eval(*fallback, scope)
                               : Value::undefined(fmt::format("the parameter '{}' was not given", name)));
    }
  }
  arguments.finish();
  std::string text;
  run_body(macro.body, scope, text);
  return Value(std::move(text));
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

}  // namespace

std::string render(const Body& body, const Variables& variables, const RenderOptions& options) {
  return Interpreter(variables, options).run(body);
}

}  // namespace heddle::jinja
