#include "heddle/text/jinja/interpreter.h"

#include "heddle/text/jinja/interpreter_state.h"

namespace heddle::jinja {
namespace {

constexpr int kMaxDepth = 600;  // limit of nested nodes, also through macros; the stack can hold this many

}  // namespace

Interpreter::Level::Level(Interpreter& self, int line) : self_(self) {
  self.line_ = line;
  self.budget_.spend(Budget::kNode);
  if (self.depth_ >= kMaxDepth) {
    fail(ErrorCode::kUnsupported, "{} levels of calls and blocks are the most; does a macro call itself?",
         kMaxDepth);
  }
  ++self.depth_;
}

std::string Interpreter::run(const Body& body) {
  find_blocks(body);
  try {
    std::string out;
    run_body(body, root_, out);
    return out;
  } catch (const Error& error) {
    fail(error.code(), "line {}: {}", line_, error.what());
  }
}

// Collects the blocks that `self` knows.
void Interpreter::find_blocks(const Body& body) {
  for (const auto& statement : body) {
    if (statement->kind == Statement::kBlock) blocks_.emplace(statement->text, statement.get());
    for (const auto& branch : statement->branches) find_blocks(branch.body);
    for (const Body* inner : {&statement->body, &statement->orelse, &statement->macro.body})
      find_blocks(*inner);
  }
}

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
    case Statement::kIf:
      return run_if(statement, scope, out);
    case Statement::kFor:
      return run_for(statement, scope, out);
    case Statement::kBreak:
      return Jump::kBreak;
    case Statement::kContinue:
      return Jump::kContinue;
    case Statement::kGroup:
      return run_body(statement.body, scope, out);
    default:
      run_simple(statement, scope, out);
      return Jump::kNone;
  }
}

// Runs a statement that no jump leaves.
void Interpreter::run_simple(const Statement& statement, Scope& scope, std::string& out) {
  switch (statement.kind) {
    case Statement::kText:
      return emit(statement.text, out);
    case Statement::kOutput:
      return emit(to_text(budget_, eval(*statement.expr, scope)), out);
    case Statement::kSet:
      return assign(statement.target, eval(*statement.expr, scope), scope);
    case Statement::kSetBlock:
      return assign(statement.target, run_filtered(statement, scope), scope);
    case Statement::kFilter:
      return emit(to_text(budget_, run_filtered(statement, scope)), out);
    case Statement::kMacro: {
      const MacroStatement& macro = statement.macro;
      return scope.set(macro.name, Value(std::make_shared<const Callable>(
                                       Callable{.name = macro.name, .macro = &macro, .scope = &scope})));
    }
    case Statement::kWith:
      return run_with(statement, scope, out);
    case Statement::kScope:
      return run_inner(statement.body, scope, out);
    case Statement::kCall:
      return run_call(statement, scope, out);
    case Statement::kBlock:
      return run_inner(statement.body, statement.flag ? scope : root_, out);
    case Statement::kAutoescape:
      if (truth(eval(*statement.expr, scope)))
        fail(ErrorCode::kUnsupported, "the block 'autoescape' is supported only if it is false");
      return run_inner(statement.body, scope, out);
    case Statement::kRequired:
      fail(ErrorCode::kInvalidArgument, "the block '{}' is required, and no template gives it",
           statement.text);
    default:
      fail(ErrorCode::kUnsupported, "the block '{}' asks for another template; a chat template stands alone",
           statement.text);
  }
}

Interpreter::Jump Interpreter::run_if(const Statement& statement, Scope& scope, std::string& out) {
  for (const Statement::Branch& branch : statement.branches) {
    if (truth(eval(*branch.condition, scope))) return run_body(branch.body, scope, out);
  }
  return run_body(statement.orelse, scope, out);
}

std::vector<Value> Interpreter::loop_items(const Statement& statement, const Value& value, Scope& scope) {
  std::vector<Value> items = items_of(budget_, value);
  if (!statement.condition) return items;
  std::vector<Value> kept;
  for (Value& item : items) {
    Scope inner{.outer = &scope};
    assign(statement.target, item, inner);
    if (truth(eval(*statement.condition, inner))) kept.push_back(std::move(item));
  }
  return kept;
}

Interpreter::Jump Interpreter::run_for(const Statement& statement, Scope& scope, std::string& out) {
  return run_loop(statement, eval(*statement.expr, scope), scope, out, 0);
}

// As in Jinja: `else` runs unless the body was completed at least once.
Interpreter::Jump Interpreter::run_loop(const Statement& statement, const Value& items, Scope& scope,
                                        std::string& out, int64_t depth) {
  const auto loop = std::make_shared<Loop>(Loop{.items = loop_items(statement, items, scope),
                                                .depth0 = depth,
                                                .recursive = statement.flag ? &statement : nullptr,
                                                .scope = &scope});
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

void Interpreter::run_inner(const Body& body, Scope& scope, std::string& out) {
  Scope inner{.outer = &scope};
  run_body(body, inner, out);
}

// Calls a macro that may call the body of the block.
void Interpreter::run_call(const Statement& statement, Scope& scope, std::string& out) {
  const Value caller(std::make_shared<const Callable>(Callable{.macro = &statement.macro, .scope = &scope}));
  emit(to_text(budget_, eval_call(*statement.expr, scope, caller)), out);
}

// Renders a body and applies the filters, if there are any.
Value Interpreter::run_filtered(const Statement& statement, Scope& scope) {
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

std::string render(const Body& body, const Variables& variables, const RenderOptions& options) {
  return Interpreter(variables, options).run(body);
}

}  // namespace heddle::jinja
