#include "heddle/text/jinja/parser.h"

#include <algorithm>

#include "heddle/text/jinja/expression_parser.h"

namespace heddle::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body parse() {
    Body body = parse_body({});
    if (now().kind != Token::kEnd) fail_here("the end of the template");
    return body;
  }

 private:
  using Names = std::initializer_list<std::string_view>;
  using Made = std::unique_ptr<Statement>;

  // Parses statements up to the first tag that begins with one of `ends`, and stops at its name.
  Body parse_body(Names ends);
  Body parse_inner_body(Names ends);
  // Parses such a body and the tag that ends it.
  Body parse_last_body(std::string_view end);
  void end_tag() { expect(Token::kBlockEnd, "the end of the tag"); }
  Made made(Statement::Kind kind, int line) const;

  Made parse_statement();
  Made parse_output();
  Made parse_if(int line);
  Made parse_for(int line);
  Made parse_set(int line);
  Made parse_macro(int line);
  Made parse_filter_block(int line);
  Made parse_with(int line);
  Made parse_scope(int line);
  Made parse_jump(int line, Statement::Kind kind);

  int depth_ = 0;
  int loops_ = 0;   // number of loops around, inside the innermost body that a jump cannot leave
  int scopes_ = 0;  // number of enclosing scopes that cannot contain a macro
};

Parser::Made Parser::made(Statement::Kind kind, int line) const {
  auto statement = std::make_unique<Statement>();
  statement->kind = kind;
  statement->line = line;
  return statement;
}

Body Parser::parse_body(Names ends) {
  if (++depth_ > kMaxDepth) {
    fail_at(now().line, ErrorCode::kUnsupported, fmt::format("blocks of more than {} levels", kMaxDepth));
  }
  Body body;
  while (now().kind != Token::kEnd) {
    const int line = now().line;
    if (now().kind == Token::kData) {
      Made text = made(Statement::kText, line);
      text->text = next().text;
      body.push_back(std::move(text));
    } else if (now().kind == Token::kOutputBegin) {
      body.push_back(parse_output());
    } else {
      expect(Token::kBlockBegin, "a tag");
      if (now().kind != Token::kName) fail_here("the name of a block");
      if (std::ranges::find(ends, now().text) != ends.end()) break;
      body.push_back(parse_statement());
    }
  }
  --depth_;
  if (ends.size() > 0 && now().kind == Token::kEnd) fail_here(fmt::format("{{% {} %}}", *(ends.end() - 1)));
  return body;
}

Body Parser::parse_inner_body(Names ends) {
  ++scopes_;
  Body body = parse_body(ends);
  --scopes_;
  return body;
}

Body Parser::parse_last_body(std::string_view end) {
  const int loops = loops_;
  loops_ = 0;
  Body body = parse_inner_body({end});
  loops_ = loops;
  next();
  end_tag();
  return body;
}

Parser::Made Parser::parse_output() {
  Made output = made(Statement::kOutput, next().line);
  output->expr = parse_tuple(true);
  expect(Token::kOutputEnd, "the end of the tag");
  return output;
}

Parser::Made Parser::parse_statement() {
  const Token name = next();
  const int line = name.line;
  if (name.text == "if") return parse_if(line);
  if (name.text == "for") return parse_for(line);
  if (name.text == "set") return parse_set(line);
  if (name.text == "macro") return parse_macro(line);
  if (name.text == "filter") return parse_filter_block(line);
  if (name.text == "with") return parse_with(line);
  if (name.text == "generation") return parse_scope(line);
  if (name.text == "break") return parse_jump(line, Statement::kBreak);
  if (name.text == "continue") return parse_jump(line, Statement::kContinue);
  constexpr std::string_view kOfJinja[] = {"call",    "include", "import",     "from",
                                           "extends", "block",   "autoescape", "print"};
  const bool known = std::ranges::find(kOfJinja, name.text) != std::end(kOfJinja);
  fail_at(
      line, known ? ErrorCode::kUnsupported : ErrorCode::kInvalidArgument,
      fmt::format(
          "the block '{}' is not {}; if, for, set, macro, filter, with, generation, break, continue and raw "
          "are supported",
          name.text, known ? "supported" : "expected here"));
}

Parser::Made Parser::parse_if(int line) {
  Made statement = made(Statement::kIf, line);
  while (true) {
    Statement::Branch branch;
    branch.condition = parse_tuple(false);
    end_tag();
    branch.body = parse_body({"elif", "else", "endif"});
    statement->branches.push_back(std::move(branch));
    const Token end = next();
    if (end.text == "elif") continue;
    end_tag();
    if (end.text == "endif") return statement;
    statement->orelse = parse_body({"endif"});
    next();
    end_tag();
    return statement;
  }
}

Parser::Made Parser::parse_for(int line) {
  Made loop = made(Statement::kFor, line);
  loop->target = parse_target(false);
  if (!skip_name("in")) fail_here("'in'");
  loop->expr = parse_tuple(false, "recursive");
  if (skip_name("if")) loop->condition = parse_expression();
  if (at_name("recursive")) fail_at(line, ErrorCode::kUnsupported, "a recursive loop is not supported");
  end_tag();
  ++loops_;
  loop->body = parse_inner_body({"else", "endfor"});
  --loops_;
  const Token end = next();
  end_tag();
  if (end.text == "endfor") return loop;
  loop->orelse = parse_inner_body({"endfor"});
  next();
  end_tag();
  return loop;
}

Parser::Made Parser::parse_set(int line) {
  Made set = made(Statement::kSet, line);
  set->target = parse_target(true);
  if (skip_operator("=")) {
    set->expr = parse_tuple(true);
    end_tag();
    return set;
  }
  set->kind = Statement::kSetBlock;
  set->expr = parse_filters_alone(true);
  end_tag();
  set->body = parse_last_body("endset");
  return set;
}

Parser::Made Parser::parse_macro(int line) {
  if (scopes_ > 0)
    fail_at(line, ErrorCode::kUnsupported, "a macro inside of another block than 'if' is not supported");
  Made statement = made(Statement::kMacro, line);
  MacroStatement& macro = statement->macro;
  macro.name = expect(Token::kName, "the name of the macro").text;
  expect_operator("(");
  while (!at_operator(")")) {
    if (!macro.parameters.empty()) expect_operator(",");
    MacroStatement::Parameter parameter;
    parameter.name = expect(Token::kName, "a parameter").text;
    if (skip_operator("=")) {
      parameter.fallback = parse_expression();
    } else if (!macro.parameters.empty() && macro.parameters.back().fallback) {
      fail_here("'='");
    }
    macro.parameters.push_back(std::move(parameter));
  }
  next();
  end_tag();
  macro.body = parse_last_body("endmacro");
  return statement;
}

Parser::Made Parser::parse_filter_block(int line) {
  Made block = made(Statement::kFilter, line);
  block->expr = parse_filters_alone(false);
  end_tag();
  block->body = parse_last_body("endfilter");
  return block;
}

Parser::Made Parser::parse_with(int line) {
  Made block = made(Statement::kWith, line);
  while (now().kind != Token::kBlockEnd) {
    if (!block->assignments.empty()) expect_operator(",");
    Statement::Assignment assignment;
    assignment.target = parse_target(false);
    expect_operator("=");
    assignment.expr = parse_expression();
    block->assignments.push_back(std::move(assignment));
  }
  end_tag();
  block->body = parse_last_body("endwith");
  return block;
}

Parser::Made Parser::parse_scope(int line) {
  Made block = made(Statement::kScope, line);
  end_tag();
  block->body = parse_last_body("endgeneration");
  return block;
}

Parser::Made Parser::parse_jump(int line, Statement::Kind kind) {
  if (loops_ == 0) fail_at(line, ErrorCode::kInvalidArgument, "a jump out of no loop");
  end_tag();
  return made(kind, line);
}

}  // namespace

Body parse(std::string_view source) {
  return Parser(tokenize(source)).parse();
}

}  // namespace heddle::jinja
