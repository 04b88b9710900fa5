#include "heddle/text/jinja/parser.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

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
  Made parse_call_block(int line);
  Made parse_block(int line);
  Made parse_autoescape(int line);
  Made parse_print(int line);
  Made parse_foreign(const Token& name);
  void parse_parameters(MacroStatement& macro);
  // Parses the body of a macro, and sees what it takes.
  void parse_macro_body(MacroStatement& macro, std::string_view end);
  Made parse_jump(int line, Statement::Kind kind);

  int depth_ = 0;
  int loops_ = 0;  // number of loops around, inside the innermost body that a jump cannot leave
  std::set<std::string, std::less<>> blocks_;
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

Body Parser::parse_last_body(std::string_view end) {
  const int loops = loops_;
  loops_ = 0;
  Body body = parse_body({end});
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
  static const std::map<std::string_view, Made (Parser::*)(int)> tags = {
      {"if", &Parser::parse_if},           {"for", &Parser::parse_for},
      {"set", &Parser::parse_set},         {"macro", &Parser::parse_macro},
      {"with", &Parser::parse_with},       {"filter", &Parser::parse_filter_block},
      {"call", &Parser::parse_call_block}, {"generation", &Parser::parse_scope},
      {"block", &Parser::parse_block},     {"autoescape", &Parser::parse_autoescape},
      {"print", &Parser::parse_print}};
  const Token name = next();
  const auto tag = tags.find(name.text);
  if (tag != tags.end()) return (this->*tag->second)(name.line);
  if (name.text == "break") return parse_jump(name.line, Statement::kBreak);
  if (name.text == "continue") return parse_jump(name.line, Statement::kContinue);
  constexpr std::string_view kForeign[] = {"include", "import", "from", "extends"};
  if (std::ranges::find(kForeign, name.text) != std::end(kForeign)) return parse_foreign(name);
  fail_at(name.line, ErrorCode::kInvalidArgument,
          fmt::format("the block '{}' is not expected here; if, for, set, macro, call, filter, with, block, "
                      "autoescape, print, generation, break, continue and raw are supported",
                      name.text));
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
  loop->flag = skip_name("recursive");
  end_tag();
  ++loops_;
  loop->body = parse_body({"else", "endfor"});
  --loops_;
  const Token end = next();
  end_tag();
  if (end.text == "endfor") return loop;
  loop->orelse = parse_body({"endfor"});
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
  Made statement = made(Statement::kMacro, line);
  MacroStatement& macro = statement->macro;
  macro.name = expect(Token::kName, "the name of the macro").text;
  parse_parameters(macro);
  end_tag();
  parse_macro_body(macro, "endmacro");
  return statement;
}

void Parser::parse_parameters(MacroStatement& macro) {
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
}

void Parser::parse_macro_body(MacroStatement& macro, std::string_view end) {
  auto around = std::exchange(mentions, {});
  macro.body = parse_last_body(end);
  const auto reads = [&](std::string_view name) {
    const auto found = mentions.find(name);
    const bool parameter =
        std::ranges::find(macro.parameters, name, &MacroStatement::Parameter::name) != macro.parameters.end();
    return found != mentions.end() && found->second && !parameter;
  };
  macro.takes_varargs = reads("varargs");
  macro.takes_kwargs = reads("kwargs");
  macro.takes_caller = reads("caller");
  around.merge(mentions);
  mentions = std::move(around);
}

Parser::Made Parser::parse_call_block(int line) {
  Made statement = made(Statement::kCall, line);
  if (at_operator("(")) parse_parameters(statement->macro);
  ExprPtr call = parse_expression();
  if (call->kind != Expr::kCall)
    fail_at(line, ErrorCode::kInvalidArgument, "'call' is not followed by a call");
  statement->expr = std::move(call);
  end_tag();
  parse_macro_body(statement->macro, "endcall");
  return statement;
}

Parser::Made Parser::parse_block(int line) {
  Made block = made(Statement::kBlock, line);
  block->text = expect(Token::kName, "the name of the block").text;
  if (!blocks_.insert(block->text).second)
    fail_at(line, ErrorCode::kInvalidArgument, fmt::format("the block '{}' is there twice", block->text));
  block->flag = skip_name("scoped");
  if (skip_name("required")) block->kind = Statement::kRequired;
  end_tag();
  const int loops = std::exchange(loops_, 0);
  block->body = parse_body({"endblock"});
  loops_ = loops;
  next();
  skip_name(block->text);
  end_tag();
  return block;
}

Parser::Made Parser::parse_autoescape(int line) {
  Made block = made(Statement::kAutoescape, line);
  block->expr = parse_expression();
  end_tag();
  block->body = parse_last_body("endautoescape");
  return block;
}

Parser::Made Parser::parse_print(int line) {
  Made group = made(Statement::kGroup, line);
  while (now().kind != Token::kBlockEnd) {
    if (!group->body.empty()) expect_operator(",");
    Made output = made(Statement::kOutput, line);
    output->expr = parse_expression();
    group->body.push_back(std::move(output));
  }
  end_tag();
  return group;
}

// A tag that asks for another template fails when it is reached: a model has one template.
Parser::Made Parser::parse_foreign(const Token& name) {
  Made statement = made(Statement::kForeign, name.line);
  statement->text = name.text;
  while (now().kind != Token::kBlockEnd && now().kind != Token::kEnd) next();
  end_tag();
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
