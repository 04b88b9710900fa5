// The interpreter's class: statements are in interpreter.cpp, expressions in evaluate.cpp, calls in calls.cpp.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/text/jinja/arguments.h"
#include "heddle/text/jinja/ast.h"
#include "heddle/text/jinja/render_options.h"

namespace heddle::jinja {

// The names that a body sets. A macro sees those of the scope that it is in, and its own. A scope outlives all
// values that know it: nothing that holds a macro can be set outside of the macro's scope.
struct Scope {
  Scope* outer = nullptr;
  std::vector<std::pair<std::string_view, Value>> names = {};

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

  std::string run(const Body& body);

 private:
  enum class Jump { kNone, kBreak, kContinue };

  // Counts a level of nodes, and records the line for an error.
  class Level {
   public:
    Level(Interpreter& self, int line);
    ~Level() { --self_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Interpreter& self_;
  };

  Jump run_body(const Body& body, Scope& scope, std::string& out);
  Jump run_statement(const Statement& statement, Scope& scope, std::string& out);
  void run_simple(const Statement& statement, Scope& scope, std::string& out);
  Jump run_if(const Statement& statement, Scope& scope, std::string& out);
  Jump run_for(const Statement& statement, Scope& scope, std::string& out);
  Jump run_loop(const Statement& statement, const Value& items, Scope& scope, std::string& out,
                int64_t depth);
  std::vector<Value> loop_items(const Statement& statement, const Value& value, Scope& scope);
  Value run_filtered(const Statement& statement, Scope& scope);
  void run_with(const Statement& statement, Scope& scope, std::string& out);
  void run_inner(const Body& body, Scope& scope, std::string& out);
  void run_call(const Statement& statement, Scope& scope, std::string& out);
  void emit(std::string_view text, std::string& out);
  void assign(const Target& target, const Value& value, Scope& scope);
  void find_blocks(const Body& body);

  Value eval(const Expr& expr, Scope& scope);
  Value eval_name(std::string_view name, const Scope& scope) const;
  const Value* find_variable(std::string_view name, const Scope& scope) const;
  Value eval_container(const Expr& expr, Scope& scope);
  Value eval_attribute(const Expr& expr, Scope& scope);
  Value eval_slice(const Expr& expr, Scope& scope);
  Value eval_filter(const Expr& expr, Scope& scope, const Value* input);
  Value eval_unary(const Expr& expr, Scope& scope);
  Value eval_concat(const Expr& expr, Scope& scope);
  Value eval_compare(const Expr& expr, Scope& scope);
  Value eval_choice(const Expr& expr, Scope& scope);

  // `caller` is the body of a call block; else undefined.
  Value eval_call(const Expr& expr, Scope& scope, const Value& caller = Value());
  Value call(const Value& callee, Arguments& arguments);
  Arguments eval_arguments(const Expr& expr, Scope& scope);
  void add_spread(const Expr& expr, Scope& scope, std::vector<Value>& positional, Arguments::Named& named);
  Value call_macro(const Callable& callable, Arguments& arguments);
  Value call_block(const Statement& block);
  Value call_loop(const Loop& loop, Arguments& arguments);

  const Variables& variables_;
  const RenderOptions& options_;
  Budget budget_;
  Scope root_;
  std::map<std::string_view, const Statement*> blocks_;
  int line_ = 1;
  int depth_ = 0;
};

}  // namespace heddle::jinja
