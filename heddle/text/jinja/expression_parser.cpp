#include "heddle/text/jinja/expression_parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "heddle/text/jinja/integer.h"

namespace heddle::jinja {
namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::kBlockEnd:
    case Token::kOutputEnd:
      return "the end of the tag";
    case Token::kEnd:
      return "the end of the template";
    case Token::kString:
      return "a string";
    case Token::kData:
    case Token::kBlockBegin:
    case Token::kOutputBegin:
      return "text";
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace

bool ExpressionParser::skip_operator(std::string_view text) {
  if (!at_operator(text)) return false;
  next();
  return true;
}

bool ExpressionParser::skip_name(std::string_view text) {
  if (!at_name(text)) return false;
  next();
  return true;
}

void ExpressionParser::expect_operator(std::string_view text) {
  if (!skip_operator(text)) fail_here(fmt::format("'{}'", text));
}

Token ExpressionParser::expect(Token::Kind kind, std::string_view what) {
  if (now().kind != kind) fail_here(what);
  return next();
}

void ExpressionParser::fail_at(int line, ErrorCode code, std::string_view what) const {
  fail(code, "line {}: {}", line, what);
}

void ExpressionParser::fail_here(std::string_view wanted) const {
  fail_at(now().line, ErrorCode::kInvalidArgument,
          fmt::format("{} where {} is expected", describe(now()), wanted));
}

std::unique_ptr<Expr> ExpressionParser::node(Expr::Kind kind, int line, std::string name) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  expr->name = std::move(name);
  return expr;
}

ExprPtr ExpressionParser::done(std::unique_ptr<Expr> expr) const {
  const auto count = [&](const ExprPtr& part) {
    if (part) expr->depth = std::max(expr->depth, part->depth + 1);
  };
  std::ranges::for_each(expr->parts, count);
  count(expr->spread);
  count(expr->named_spread);
  if (expr->depth > kMaxDepth) {
    fail_at(expr->line, ErrorCode::kUnsupported,
            fmt::format("an expression of more than {} levels", kMaxDepth));
  }
  return expr;
}

bool ExpressionParser::ends_tuple(std::string_view ends_before) const {
  const Token::Kind kind = now().kind;
  if (kind == Token::kBlockEnd || kind == Token::kOutputEnd || at_operator(")")) return true;
  return !ends_before.empty() && at_name(ends_before);
}

ExprPtr ExpressionParser::parse_tuple(bool with_if, std::string_view ends_before, bool may_be_empty) {
  auto tuple = node(Expr::kTuple, now().line);
  bool is_tuple = false;
  while (!ends_tuple(ends_before)) {
    tuple->parts.push_back(with_if ? parse_if() : parse_or());
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && tuple->parts.size() == 1) return std::move(tuple->parts[0]);
  if (tuple->parts.empty() && !may_be_empty) fail_here("an expression");
  return done(std::move(tuple));
}

Target ExpressionParser::parse_target(bool with_attribute) {
  Target all;
  bool is_tuple = false;
  const auto ends = [&] {
    return now().kind == Token::kBlockEnd || at_operator("=") || at_operator(")") || at_name("in");
  };
  if (++depth_ > kMaxDepth) fail_at(now().line, ErrorCode::kUnsupported, "targets are nested too deeply");
  do {
    if (!all.parts.empty() && ends()) break;
    Target part;
    if (skip_operator("(")) {
      part = parse_target(with_attribute);
      expect_operator(")");
    } else {
      const Token name = expect(Token::kName, "a name to assign to");
      constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None", "loop"};
      if (std::ranges::find(kConstants, name.text) != std::end(kConstants)) {
        fail_at(name.line, ErrorCode::kInvalidArgument, fmt::format("'{}' cannot be assigned to", name.text));
      }
      part.name = name.text;
      mentions.emplace(name.text, false);
      if (with_attribute && skip_operator(".")) part.attribute = expect(Token::kName, "an attribute").text;
    }
    all.parts.push_back(std::move(part));
    is_tuple |= at_operator(",");
  } while (skip_operator(","));
  --depth_;
  if (is_tuple) return all;
  Target only = std::move(all.parts[0]);
  return only;
}

ExprPtr ExpressionParser::parse_if() {
  if (++depth_ > kMaxDepth)
    fail_at(now().line, ErrorCode::kUnsupported, "an expression is nested too deeply");
  ExprPtr expr = parse_or();
  while (at_name("if")) {
    auto choice = node(Expr::kIf, next().line);
    choice->parts.push_back(std::move(expr));
    choice->parts.push_back(parse_or());
    choice->parts.push_back(skip_name("else") ? parse_if() : nullptr);
    expr = done(std::move(choice));
  }
  --depth_;
  return expr;
}

ExprPtr ExpressionParser::parse_or() {
  ExprPtr left = parse_and();
  while (at_name("or")) {
    auto both = node(Expr::kOr, next().line);
    both->parts.push_back(std::move(left));
    both->parts.push_back(parse_and());
    left = done(std::move(both));
  }
  return left;
}

ExprPtr ExpressionParser::parse_and() {
  ExprPtr left = parse_not();
  while (at_name("and")) {
    auto both = node(Expr::kAnd, next().line);
    both->parts.push_back(std::move(left));
    both->parts.push_back(parse_not());
    left = done(std::move(both));
  }
  return left;
}

ExprPtr ExpressionParser::parse_not() {
  if (!at_name("not")) return parse_compare();
  if (++depth_ > kMaxDepth)
    fail_at(now().line, ErrorCode::kUnsupported, "an expression is nested too deeply");
  auto negation = node(Expr::kUnary, next().line, "not");
  negation->parts.push_back(parse_not());
  --depth_;
  return done(std::move(negation));
}

ExprPtr ExpressionParser::parse_compare() {
  constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
  ExprPtr first = parse_sum();
  auto comparison = node(Expr::kCompare, now().line);
  while (true) {
    const bool symbol =
        now().kind == Token::kOperator && std::ranges::find(kOperators, now().text) != std::end(kOperators);
    const bool negated = at_name("not") && ahead().kind == Token::kName && ahead().text == "in";
    if (!symbol && !negated && !at_name("in")) break;
    const Token operation = next();
    if (negated) next();
    comparison->operators.push_back(negated ? "notin" : operation.text);
    comparison->parts.push_back(parse_sum());
  }
  if (comparison->operators.empty()) return first;
  comparison->parts.insert(comparison->parts.begin(), std::move(first));
  return done(std::move(comparison));
}

ExprPtr ExpressionParser::parse_left_to_right(Parse operand,
                                              std::initializer_list<std::string_view> operators) {
  ExprPtr left = (this->*operand)();
  while (now().kind == Token::kOperator && std::ranges::find(operators, now().text) != operators.end()) {
    const Token operation = next();
    auto both = node(Expr::kBinary, operation.line, operation.text);
    both->parts.push_back(std::move(left));
    both->parts.push_back((this->*operand)());
    left = done(std::move(both));
  }
  return left;
}

ExprPtr ExpressionParser::parse_sum() {
  return parse_left_to_right(&ExpressionParser::parse_concat, {"+", "-"});
}

ExprPtr ExpressionParser::parse_concat() {
  ExprPtr first = parse_product();
  if (!at_operator("~")) return first;
  auto all = node(Expr::kConcat, now().line);
  all->parts.push_back(std::move(first));
  while (skip_operator("~")) all->parts.push_back(parse_product());
  return done(std::move(all));
}

ExprPtr ExpressionParser::parse_product() {
  return parse_left_to_right(&ExpressionParser::parse_power, {"*", "/", "//", "%"});
}

ExprPtr ExpressionParser::parse_power() {
  return parse_left_to_right(&ExpressionParser::parse_filtered, {"**"});
}

ExprPtr ExpressionParser::parse_unary(bool with_filters) {
  ExprPtr expr;
  if (at_operator("-") || at_operator("+")) {
    if (++depth_ > kMaxDepth)
      fail_at(now().line, ErrorCode::kUnsupported, "an expression is nested too deeply");
    const Token sign = next();
    auto unary = node(Expr::kUnary, sign.line, sign.text);
    unary->parts.push_back(parse_unary(false));
    --depth_;
    expr = done(std::move(unary));
  } else {
    expr = parse_primary();
  }
  expr = parse_postfix(std::move(expr));
  return with_filters ? parse_filter_chain(std::move(expr)) : std::move(expr);
}

ExprPtr ExpressionParser::parse_primary() {
  switch (now().kind) {
    case Token::kName:
      return parse_name();
    case Token::kString:
      return parse_string();
    case Token::kInteger:
    case Token::kFloat:
      return parse_number();
    default:
      break;
  }
  if (at_operator("[")) return parse_list();
  if (at_operator("{")) return parse_dict();
  if (!skip_operator("(")) fail_here("an expression");
  ExprPtr inner = parse_tuple(true, {}, true);
  expect_operator(")");
  return inner;
}

ExprPtr ExpressionParser::parse_name() {
  const Token name = next();
  const bool truth = name.text == "true" || name.text == "True";
  const bool none = name.text == "none" || name.text == "None";
  if (!truth && !none && name.text != "false" && name.text != "False") {
    mentions.emplace(name.text, true);
    return node(Expr::kName, name.line, name.text);
  }
  auto literal = node(Expr::kLiteral, name.line);
  literal->value = none ? Value::none() : Value(truth);
  return literal;
}

ExprPtr ExpressionParser::parse_string() {
  auto literal = node(Expr::kLiteral, now().line);
  std::string text;
  while (now().kind == Token::kString) text += next().text;
  literal->value = Value(std::move(text));
  return literal;
}

ExprPtr ExpressionParser::parse_number() {
  const Token token = next();
  auto literal = node(Expr::kLiteral, token.line);
  if (token.kind == Token::kInteger) {
    literal->value = integer_from_digits(token.text);
    return literal;
  }
  const char* const end = token.text.data() + token.text.size();
  double number = 0;
  const auto read = std::from_chars(token.text.data(), end, number);
  // Python reads a number beyond the range of floats as an infinity, and one below as 0.
  if (read.ec != std::errc()) number = std::strtod(token.text.c_str(), nullptr);
  literal->value = Value(number);
  return literal;
}

ExprPtr ExpressionParser::parse_list() {
  auto list = node(Expr::kList, next().line);
  while (!at_operator("]")) {
    if (!list->parts.empty()) expect_operator(",");
    if (at_operator("]")) break;
    list->parts.push_back(parse_expression());
  }
  next();
  return done(std::move(list));
}

ExprPtr ExpressionParser::parse_dict() {
  auto dict = node(Expr::kDict, next().line);
  while (!at_operator("}")) {
    if (!dict->parts.empty()) expect_operator(",");
    if (at_operator("}")) break;
    dict->parts.push_back(parse_expression());
    expect_operator(":");
    dict->parts.push_back(parse_expression());
  }
  next();
  return done(std::move(dict));
}

ExprPtr ExpressionParser::parse_postfix(ExprPtr expr) {
  while (true) {
    if (at_operator(".")) {
      expr = parse_attribute(std::move(expr));
    } else if (at_operator("[")) {
      expr = parse_item(std::move(expr));
    } else if (at_operator("(")) {
      expr = parse_call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::parse_call(ExprPtr callee) {
  auto call = node(Expr::kCall, now().line);
  call->parts.push_back(std::move(callee));
  parse_arguments(*call);
  return done(std::move(call));
}

ExprPtr ExpressionParser::parse_filter_chain(ExprPtr expr) {
  while (true) {
    if (skip_operator("|")) {
      expr = parse_filter(std::move(expr));
    } else if (at_name("is")) {
      expr = parse_test(std::move(expr));
    } else if (at_operator("(")) {
      expr = parse_call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::parse_attribute(ExprPtr expr) {
  const int line = next().line;
  if (now().kind == Token::kInteger) {
    auto item = node(Expr::kItem, line);
    item->parts.push_back(std::move(expr));
    item->parts.push_back(parse_number());
    return done(std::move(item));
  }
  auto attribute = node(Expr::kAttribute, line, expect(Token::kName, "a name or a number").text);
  attribute->parts.push_back(std::move(expr));
  return done(std::move(attribute));
}

ExprPtr ExpressionParser::parse_item(ExprPtr expr) {
  const int line = next().line;
  auto slice = node(Expr::kSlice, line);
  slice->parts.push_back(std::move(expr));
  bool colon = false;
  for (int i = 0; i < 3; ++i) {
    slice->parts.push_back(at_operator(":") || at_operator("]") ? nullptr : parse_expression());
    if (i == 2 || !at_operator(":")) break;
    colon = true;
    next();
  }
  if (at_operator(",")) {
    if (colon) fail_at(line, ErrorCode::kUnsupported, "a slice among several indices");
    auto indices = node(Expr::kTuple, line);
    indices->parts.push_back(std::move(slice->parts[1]));
    while (skip_operator(",") && !at_operator("]")) indices->parts.push_back(parse_expression());
    slice->parts[1] = done(std::move(indices));
  }
  expect_operator("]");
  if (!colon && !slice->parts[1])
    fail_at(line, ErrorCode::kInvalidArgument, "an index is missing between [ and ]");
  slice->kind = colon ? Expr::kSlice : Expr::kItem;
  if (colon) slice->parts.resize(4);
  return done(std::move(slice));
}

ExprPtr ExpressionParser::parse_filter(ExprPtr input) {
  const Token name = expect(Token::kName, "the name of a filter");
  auto filter = node(Expr::kFilter, name.line, name.text);
  filter->parts.push_back(std::move(input));
  if (at_operator("(")) parse_arguments(*filter);
  return done(std::move(filter));
}

ExprPtr ExpressionParser::parse_filters_alone(bool with_bar) {
  ExprPtr filter = with_bar ? nullptr : parse_filter(nullptr);
  while (skip_operator("|")) filter = parse_filter(std::move(filter));
  return filter;
}

ExprPtr ExpressionParser::parse_test(ExprPtr input) {
  const int line = next().line;
  const bool negated = skip_name("not");
  const Token name = expect(Token::kName, "the name of a test");
  auto test = node(Expr::kTest, line, name.text);
  test->parts.push_back(std::move(input));
  const Token::Kind kind = now().kind;
  const bool operand = kind == Token::kName || kind == Token::kString || kind == Token::kInteger ||
                       kind == Token::kFloat || at_operator("[") || at_operator("{");
  if (at_operator("(")) {
    parse_arguments(*test);
  } else if (operand && !at_name("else") && !at_name("or") && !at_name("and")) {
    if (at_name("is")) fail_at(line, ErrorCode::kInvalidArgument, "one test cannot follow another");
    test->parts.push_back(parse_postfix(parse_primary()));
  }
  ExprPtr expr = done(std::move(test));
  if (!negated) return expr;
  auto negation = node(Expr::kUnary, line, "not");
  negation->parts.push_back(std::move(expr));
  return done(std::move(negation));
}

void ExpressionParser::parse_arguments(Expr& call) {
  const int line = now().line;
  next();
  bool first = true;
  while (!at_operator(")")) {
    if (!first) expect_operator(",");
    first = false;
    if (at_operator(")")) break;
    if (at_operator("*") || at_operator("**")) {
      ExprPtr& spread = next().text == "*" ? call.spread : call.named_spread;
      if (spread || call.named_spread)
        fail_at(line, ErrorCode::kInvalidArgument,
                "arguments after * or ** come twice or in the wrong order");
      spread = parse_expression();
      continue;
    }
    const bool keyword =
        now().kind == Token::kName && ahead().kind == Token::kOperator && ahead().text == "=";
    if (call.named_spread) fail_at(line, ErrorCode::kInvalidArgument, "an argument comes after those of **");
    if (keyword) {
      call.keywords.push_back(next().text);
      next();
    } else if (!call.keywords.empty() || call.spread) {
      fail_at(line, ErrorCode::kInvalidArgument, "an argument without a name comes after one with a name");
    }
    call.parts.push_back(parse_expression());
  }
  next();
}

}  // namespace heddle::jinja
