// Calls macros, functions, methods, blocks and recursive loops for the interpreter.
#include <fmt/format.h>

#include "heddle/text/jinja/brace_format.h"
#include "heddle/text/jinja/functions.h"
#include "heddle/text/jinja/interpreter_state.h"
#include "heddle/text/jinja/methods.h"

namespace heddle::jinja {

Value Interpreter::eval_call(const Expr& expr, Scope& scope, const Value& caller) {
  const Value callee = eval(*expr.parts[0], scope);
  line_ = expr.line;
  require_defined(callee);
  Arguments arguments = eval_arguments(expr, scope);
  line_ = expr.line;
  if (!caller.is(Kind::kUndefined)) arguments.add("caller", caller);
  return call(callee, arguments);
}

Value Interpreter::call(const Value& callee, Arguments& arguments) {
  if (callee.is(Kind::kLoop)) return call_loop(callee.as_loop(), arguments);
  if (callee.is(Kind::kCycler) && callee.as_cycler().is_joiner) {
    arguments.finish();
    Cycler& joiner = callee.as_cycler();
    return std::exchange(joiner.at, 1) == 0 ? Value("") : joiner.items[0];
  }
  require(callee.is(Kind::kCallable), "{} is called; a macro, a function or a method is expected",
          describe(callee));
  const Callable& callable = callee.as_callable();
  if (callable.macro) return call_macro(callable, arguments);
  if (callable.block) {
    arguments.finish();
    return call_block(*callable.block);
  }
  require(!callable.self.is(Kind::kUndefined) || is_function(callable.name),
          "'{}' is called; its blocks can be", callable.name);
  if (callable.self.is(Kind::kUndefined)) return call_function(budget_, callable.name, arguments, options_);
  const bool map = callable.name == "format_map";
  if (callable.self.is(Kind::kString) && (map || callable.name == "format")) {
    Value made = map ? brace_format_map(budget_, callable.self, arguments)
                     : brace_format(budget_, callable.self, arguments);
    arguments.finish();
    return made;
  }
  return call_method(budget_, callable, arguments);
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
  if (expr.spread || expr.named_spread) add_spread(expr, scope, positional, named);
  return Arguments(std::move(positional), std::move(named));
}

// The arguments after * and **.
void Interpreter::add_spread(const Expr& expr, Scope& scope, std::vector<Value>& positional,
                             Arguments::Named& named) {
  if (expr.spread) {
    for (Value& item : items_of(budget_, eval(*expr.spread, scope))) positional.push_back(std::move(item));
  }
  if (!expr.named_spread) return;
  const Value more = eval(*expr.named_spread, scope);
  require(more.is(Kind::kDict), "{} after **; a dict is expected", describe(more));
  for (const auto& [key, value] : more.as_dict().items) {
    budget_.spend(Budget::kItem);
    require(key.is(Kind::kString), "{} as the name of an argument; a string is expected", describe(key));
    named.emplace_back(key.as_string(), value);
  }
}

Value Interpreter::call_macro(const Callable& callable, Arguments& arguments) {
  const MacroStatement& macro = *callable.macro;
  std::vector<Value> given = arguments.take_positional();
  Scope scope{.outer = callable.scope};
  bool caller_is_parameter = false;
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& [name, fallback] = macro.parameters[i];
    caller_is_parameter |= name == "caller";
    std::optional<Value> value;
    if (i < given.size()) {
      value = given[i];
    } else {
      value = arguments.take(name);
    }
    if (!value) {
      value = fallback ? eval(*fallback, scope)
                       : Value::undefined(fmt::format("the parameter '{}' was not given", name));
    }
    scope.set(name, std::move(*value));
  }
  if (macro.takes_caller && !caller_is_parameter) {
    const auto caller = arguments.take("caller");
    scope.set("caller", caller ? *caller : Value::undefined("no caller is defined: this is no call block"));
  }
  if (macro.takes_kwargs) {
    Dict::Items items;
    for (const auto& [name, value] : arguments.take_named()) set_item(budget_, items, Value(name), value);
    scope.set("kwargs", make_dict(std::move(items)));
  }
  const size_t count = macro.parameters.size();
  if (macro.takes_varargs) {
    given.erase(given.begin(), given.begin() + long(std::min(count, given.size())));
    scope.set("varargs", make_sequence(std::move(given), Sequence::kTuple));
  } else {
    require(given.size() <= count, "{} arguments are given; at most {} are expected", given.size(), count);
  }
  arguments.finish();
  std::string text;
  run_body(macro.body, scope, text);
  return Value(std::move(text));
}

Value Interpreter::call_block(const Statement& block) {
  const Level level(*this, block.line);
  std::string text;
  run_inner(block.body, root_, text);
  return Value(std::move(text));
}

// Runs the body of a recursive loop for other items.
Value Interpreter::call_loop(const Loop& loop, Arguments& arguments) {
  require(loop.recursive, "a loop is called; only a loop with 'recursive' can be");
  const Value items = arguments.at(0, "iterable");
  arguments.finish();
  const Level level(*this, loop.recursive->line);
  std::string text;
  run_loop(*loop.recursive, items, *loop.scope, text, loop.depth0 + 1);
  return Value(std::move(text));
}

}  // namespace heddle::jinja
