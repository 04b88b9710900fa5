// A template as a tree. Nodes do not change after parsing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/text/jinja/value.h"

namespace heddle::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

struct Expr {
  enum Kind {
    kLiteral,    // value
    kName,       // name
    kList,       // parts
    kTuple,      // parts
    kDict,       // parts: key, value, key, …
    kAttribute,  // parts[0].name
    kItem,       // parts[0][parts[1]]
    kSlice,      // parts[0][parts[1]:parts[2]:parts[3]], each of the three may be null
    kCall,       // parts[0](arguments)
    kFilter,     // parts[0] | name(arguments); parts[0] is null at the head of a filter block
    kTest,       // parts[0] is name(arguments)
    kUnary,      // name: + - not
    kBinary,     // name: + - * / // % **
    kConcat,     // parts, joined by ~
    kCompare,    // parts[0] operators[0] parts[1] operators[1] …
    kAnd,
    kOr,
    kIf,  // parts[0] if parts[1] else parts[2], which may be null
  };
  Kind kind = kLiteral;
  int line = 0;
  std::string name;
  Value value;
  std::vector<ExprPtr> parts;          // with arguments: the ones with keywords come last
  std::vector<std::string> keywords;   // for the last parts
  std::vector<std::string> operators;  // == != < <= > >= in notin
  ExprPtr spread, named_spread;        // arguments after * and **; may be null
  int depth = 1;                       // depth of the tree below
};

// The target of an assignment: a name, an attribute of a namespace, or several targets.
struct Target {
  std::string name;
  std::string attribute;  // empty for a name
  std::vector<Target> parts;
};

struct Statement;
using Body = std::vector<std::unique_ptr<const Statement>>;

struct MacroStatement {
  struct Parameter {
    std::string name;
    ExprPtr fallback;  // null: undefined
  };
  std::string name;  // empty for the body of a call block
  std::vector<Parameter> parameters;
  Body body;
  // Its body mentions varargs, kwargs or caller, so that it takes them.
  bool takes_varargs = false, takes_kwargs = false, takes_caller = false;
};

struct Statement {
  enum Kind {
    kText,        // text
    kOutput,      // expr
    kIf,          // branches, orelse
    kFor,         // target, expr, condition (may be null), body, orelse, flag: recursive
    kSet,         // target, expr
    kSetBlock,    // target, body, expr: a filter without input, may be null
    kMacro,       // macro
    kFilter,      // body, expr: a filter without input
    kWith,        // assignments, body
    kScope,       // body
    kGroup,       // body, in the scope around it
    kCall,        // expr: a call, macro: its body
    kBlock,       // text: name, body, flag: scoped
    kRequired,    // text: the name of a required block
    kAutoescape,  // expr, body
    kForeign,     // text: the name of a tag that asks for other templates
    kBreak,
    kContinue,
  };
  struct Branch {
    ExprPtr condition;
    Body body;
  };
  struct Assignment {
    Target target;
    ExprPtr expr;
  };
  Kind kind = kText;
  int line = 0;
  std::string text;
  Target target;
  ExprPtr expr, condition;
  Body body, orelse;
  std::vector<Branch> branches;
  std::vector<Assignment> assignments;
  MacroStatement macro;
  bool flag = false;
};

}  // namespace heddle::jinja
