// Parses the expressions of templates. It also has the state that all parsing shares: the tokens and the
// position in them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/text/jinja/ast.h"
#include "heddle/text/jinja/lexer.h"

namespace heddle::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  // Limit of nested nodes; well within what the stack can hold.
  static constexpr int kMaxDepth = 120;

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool at_operator(std::string_view text) const {
    return now().kind == Token::kOperator && now().text == text;
  }
  bool at_name(std::string_view text) const { return now().kind == Token::kName && now().text == text; }
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_operator(std::string_view text);
  Token expect(Token::Kind kind, std::string_view what);

  [[noreturn]] void fail_at(int line, ErrorCode code, std::string_view what) const;
  [[noreturn]] void fail_here(std::string_view wanted) const;

  // Parses a tuple if commas follow, otherwise one expression. Without `with_if` an `if` ends it.
  ExprPtr parse_tuple(bool with_if, std::string_view ends_before = {}, bool may_be_empty = false);
  ExprPtr parse_expression() { return parse_if(); }
  ExprPtr parse_postfix(ExprPtr expr);
  ExprPtr parse_primary();
  // Parses `| name(…) | …` without input; null if there is none. Without `with_bar` the first name comes at
  // once.
  ExprPtr parse_filters_alone(bool with_bar);
  Target parse_target(bool with_attribute);
  ExprPtr parse_call(ExprPtr callee);

  // The names that the text mentions: true if the first mention reads it, false if it sets it.
  std::map<std::string, bool, std::less<>> mentions;

 private:
  using Parse = ExprPtr (ExpressionParser::*)();
  ExprPtr parse_if();
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters);
  ExprPtr parse_filtered() { return parse_unary(true); }
  ExprPtr parse_name();
  ExprPtr parse_string();
  ExprPtr parse_number();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_filter_chain(ExprPtr expr);
  ExprPtr parse_attribute(ExprPtr expr);
  ExprPtr parse_item(ExprPtr expr);
  ExprPtr parse_filter(ExprPtr input);
  ExprPtr parse_test(ExprPtr input);
  void parse_arguments(Expr& call);
  ExprPtr parse_left_to_right(Parse operand, std::initializer_list<std::string_view> operators);
  bool ends_tuple(std::string_view ends_before) const;
  std::unique_ptr<Expr> node(Expr::Kind kind, int line, std::string name = {}) const;
  // Checks the depth of the finished expression.
  ExprPtr done(std::unique_ptr<Expr> expr) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;  // recursion depth of the parser itself
};

}  // namespace heddle::jinja
