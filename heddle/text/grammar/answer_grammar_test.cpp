#include "heddle/text/grammar/answer_grammar.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/text/grammar/schema_reader.h"

namespace heddle {
namespace {

std::shared_ptr<const TokenTrie> bytes_alone() {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.push_back(std::string(1, char(byte)));
  return std::make_shared<const TokenTrie>(std::move(texts));
}

JsonGrammar grammar_of(const std::string& schema) {
  const JsonDocument document(schema, "schema");
  return read_schema(document.root());
}

bool accepts(const std::string& schema, std::string_view text) {
  GrammarState state(std::make_shared<const AnswerGrammar>(grammar_of(schema), bytes_alone()));
  return state.accept(text) && state.is_complete();
}

TEST(AnswerGrammar, TakesValuesOfTheSchema) {
  const char* const person = R"({"type": "object", "properties": {"name": {"type": "string", "minLength": 1},
      "age": {"type": "integer", "minimum": 0, "maximum": 150}, "tags": {"type": "array", "items": {"enum": ["a", "b"]},
      "maxItems": 2}}, "required": ["name"], "additionalProperties": false})";
  EXPECT_TRUE(accepts(person, R"({"name": "Ada", "age": 36, "tags": ["a"]})"));
  EXPECT_TRUE(accepts(person, R"( {"name":"\ud83d\ude00"})"));
  EXPECT_TRUE(accepts(person, R"({"name":"x","tags":[]})"));
  EXPECT_FALSE(accepts(person, R"({"name":""})"));
  EXPECT_FALSE(accepts(person, R"({"age":1})"));
  EXPECT_FALSE(accepts(person, R"({"name":"x","age":151})"));
  EXPECT_FALSE(accepts(person, R"({"name":"x","age":01})"));
  EXPECT_FALSE(accepts(person, R"({"name":"x","tags":["a","b","a"]})"));
  EXPECT_FALSE(accepts(person, R"({"name":"x","other":1})"));
  EXPECT_FALSE(accepts(person, R"({"name":"x",})"));
  EXPECT_FALSE(accepts(person, R"({"name":"\ud83d"})"));
  EXPECT_FALSE(accepts(person, "{\"name\":\"\xC3\"}"));
}

TEST(AnswerGrammar, Recursion) {
  const char* const tree = R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {
      "of": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "required": ["of"]}}})";
  EXPECT_TRUE(accepts(tree, R"({"of":[{"of":[]},{"of":[{"of":[]}]}]})"));
  EXPECT_FALSE(accepts(tree, R"({"of":[{}]})"));
  EXPECT_THROW(grammar_of(R"({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties":
      {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}}})"),
               Error);
}

TEST(AnswerGrammar, Numbers) {
  const char* const some = R"({"type": "number", "exclusiveMinimum": 0, "maximum": 12.5})";
  for (const char* text : {"0.1", "0.0001", "1", "12", "12.5", "12.500", "9.99"})
    EXPECT_TRUE(accepts(some, text)) << text;
  for (const char* text : {"0", "-0", "0.0", "-1", "12.51", "13", "100", "12.5001", "1e1"})
    EXPECT_FALSE(accepts(some, text)) << text;
  const char* const below = R"({"type": "number", "minimum": -12.25, "exclusiveMaximum": -0.5})";
  for (const char* text : {"-12.25", "-12.2", "-1", "-0.51", "-0.500001"})
    EXPECT_TRUE(accepts(below, text)) << text;
  for (const char* text : {"-0.5", "-0.50", "-12.26", "-13", "0", "1", "-0"})
    EXPECT_FALSE(accepts(below, text)) << text;
  EXPECT_TRUE(accepts(R"({"type": "number"})", "-12.5e+3"));
  EXPECT_FALSE(accepts(R"({"type": "integer"})", "1.0"));
}

TEST(AnswerGrammar, Patterns) {
  const char* const date = R"({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"})";
  EXPECT_TRUE(accepts(date, R"("2026-11")"));
  EXPECT_FALSE(accepts(date, R"("2026-1")"));
  EXPECT_TRUE(accepts(R"({"type": "string", "pattern": "a|^b$"})", R"("xay")"));
  EXPECT_FALSE(accepts(R"({"type": "string", "pattern": "a|^b$"})", R"("xb")"));
  EXPECT_TRUE(accepts(R"({"type": "string", "pattern": "^\\S+$", "maxLength": 3})", "\"\xC3\xA9\\\"x\""));
  EXPECT_FALSE(accepts(R"({"type": "string", "pattern": "^\\S+$", "maxLength": 3})", "\"abcd\""));
  EXPECT_TRUE(accepts(R"({"type": "string", "format": "ipv4"})", "\"10.0.255.1\""));
  EXPECT_FALSE(accepts(R"({"type": "string", "format": "date"})", "\"2026-02-30\""));
}

// A validator that walks a value, for the keywords of the schemas below.
bool is_valid(const Json& value, const Json& schema);

bool is_of_type(const Json& value, const std::string& type) {
  return type == "integer" ? value.is_integer() : value.kind() == type;
}

bool is_valid_object(const Json& value, const Json& schema) {
  size_t last = 0;
  const Json none = Json::object();
  const auto& properties = (schema.find("properties") ? schema.at("properties") : none).members();
  for (const JsonMember& member : value.members()) {
    const auto at = std::ranges::find(properties, member.name, &JsonMember::name);
    const size_t place = size_t(at - properties.begin());
    if (place < last) return false;  // the schema's order
    last = place;
    const Json* rule = at == properties.end() ? schema.find("additionalProperties") : &at->value;
    if (!rule || (rule->is_bool() ? !rule->as_bool() : !is_valid(member.value, *rule))) return false;
  }
  const Json* required = schema.find("required");
  return !required || std::ranges::all_of(required->items(), [&](const Json& name) {
    return value.find(name.as_string()) != nullptr;
  });
}

bool is_valid(const Json& value, const Json& schema) {
  const auto number = [&](const char* name, double otherwise) {
    return schema.find(name) ? schema.at(name).as_number() : otherwise;
  };
  const auto within = [&](double count, const char* least, const char* most) {
    return count >= number(least, -INFINITY) && count <= number(most, INFINITY);
  };
  if (const Json* some = schema.find("anyOf"))
    return std::ranges::any_of(some->items(), [&](const Json& one) { return is_valid(value, one); });
  if (const Json* values = schema.find("enum"))
    return std::ranges::find(values->items(), value) != values->items().end();
  if (const Json* type = schema.find("type"); type && !is_of_type(value, type->as_string())) return false;
  if (value.is_object()) return is_valid_object(value, schema);
  if (value.is_array())
    return within(double(value.size()), "minItems", "maxItems") &&
           (!schema.find("items") || std::ranges::all_of(value.items(), [&](const Json& one) {
             return is_valid(one, schema.at("items"));
           }));
  if (value.is_string()) return within(double(value.as_string().size()), "minLength", "maxLength");
  if (!value.is_number()) return true;
  const double x = value.as_number();
  return within(x, "minimum", "maximum") && x > number("exclusiveMinimum", -INFINITY) &&
         x < number("exclusiveMaximum", INFINITY);
}

// All texts of an alphabet: the automaton takes those that a parser and a validator take, and each beginning of one.
TEST(AnswerGrammar, TakesWhatAValidatorTakesOfAllShortTexts) {
  struct Example {
    const char *schema, *alphabet;
    size_t longest;
  };
  const Example examples[] = {
      {R"({"type": "number"})", "-01.e", 4},
      {R"({"type": "integer", "minimum": -11, "maximum": 10})", "-012", 5},
      {R"({"type": "number", "minimum": -1.1, "exclusiveMaximum": 10.01})", "-01.", 6},
      {R"({"type": "number", "exclusiveMinimum": 0.1})", "-01.", 6},
      {R"({"type": "array", "items": {"type": "integer", "maximum": 1}, "minItems": 1, "maxItems": 2})",
       "[],1 ", 6},
      {R"({"type": "array", "items": {"enum": [1, [], [1]]}})", "[],1", 6},
      {R"({"anyOf": [{"type": "string", "minLength": 1, "maxLength": 2}, {"enum": ["", 1]}]})", "\"a1", 8},
      {R"({"type": "object", "properties": {"": {"type": "integer"}}, "additionalProperties": false})",
       "{}\":1,", 6},
  };
  for (const auto& [schema, alphabet, longest] : examples) {
    const Json parsed = parse_json(schema, "schema");
    const auto grammar = std::make_shared<const AnswerGrammar>(grammar_of(schema), bytes_alone());
    const std::string letters = alphabet;
    size_t taken = 0;
    std::string text;
    const auto visit = [&](const auto& self) -> bool {  // true if some text from here on is valid
      bool expected = false;
      try {
        expected = !text.ends_with(' ') && text.find("  ") == std::string::npos &&
                   is_valid(parse_json(text, "text"), parsed);
      } catch (const Error&) {
      }
      GrammarState state(grammar);
      const bool begins = state.accept(text);
      EXPECT_EQ(begins && state.is_complete(), expected) << schema << ": " << text;
      taken += expected;
      bool leads = expected;
      for (size_t i = 0; text.size() < longest && i < letters.size(); ++i) {
        text.push_back(letters[i]);
        leads |= self(self);
        text.pop_back();
      }
      EXPECT_TRUE(begins || !leads) << schema << ": " << text;
      return leads;
    };
    visit(visit);
    EXPECT_GT(taken, 1u) << schema;
  }
}

// A vocabulary of several bytes a token: the mask has the tokens whose bytes go on, and no others.
TEST(AnswerGrammar, MasksTheTokensThatGoOn) {
  std::vector<std::string> texts{"",     "{\"", "a\":", "\"a\":", "1}",   "12",   ",", "}",
                                 "true", "{}",  "{\"b", " ",      "\xC3", "\xA9", "\""};
  const auto grammar = std::make_shared<const AnswerGrammar>(
      grammar_of(
          R"({"type": "object", "properties": {"a": {"type": "integer", "maximum": 20}, "b": {"type": "string",
      "maxLength": 1}}, "additionalProperties": false})"),
      std::make_shared<const TokenTrie>(texts));
  std::vector<u32> mask(1);
  const std::vector<i32> ends{0};
  std::string text;
  const auto visit = [&](const auto& self, int depth) -> void {
    GrammarState state(grammar);
    ASSERT_TRUE(state.accept(text));
    state.mask(ends, mask);
    const u32 allowed = mask[0];
    EXPECT_EQ(allowed & 1, u32(state.is_complete())) << text;
    for (u32 token = 1; token < texts.size(); ++token) {
      GrammarState next = state;
      const bool goes_on = next.accept(texts[token]);
      EXPECT_EQ(allowed >> token & 1, u32(goes_on)) << text << " + " << texts[token];
      if (!goes_on || depth == 0) continue;
      text += texts[token];
      self(self, depth - 1);
      text.resize(text.size() - texts[token].size());
    }
  };
  visit(visit, 6);
}

TEST(AnswerGrammar, RefusesWhatItDoesNotDo) {
  const auto refused = [](const std::string& schema) -> std::string {
    try {
      grammar_of(schema);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused(R"({"type": "object", "properties": {"x": {"type": "number", "multipleOf": 2}}})"),
            "[schema] properties.x.multipleOf is 2: the keyword multipleOf is not supported");
  for (const auto& [schema, said] :
       {std::pair{R"({"type": "object", "patternProperties": {}})", "patternProperties"},
        {R"({"not": {}})", "the keyword not"},
        {R"({"type": "string", "pattern": "(?=a)x"})", "pattern"},
        {R"({"type": "string", "pattern": "\\bx"})", "at byte"},
        {R"({"type": "string", "format": "uri"})", "format"},
        {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})", "0 and 1 of oneOf"},
        {R"({"$ref": "#/$defs/x"})", "nothing at this path"},
        {R"({"$ref": "#"})", "levels"},
        {R"({"$ref": "x.json"})", "a reference into the schema"},
        {R"({"type": "integer", "minimum": 3, "maximum": 2})", "no value is allowed"},
        {R"({"type": "string", "enum": [1]})", "no value is allowed"},
        {R"({"type": "text"})", "a type of JSON"},
        {R"({"const": 1, "minimum": 0})", "minimum next to const"},
        {"false", "no value is allowed"},
        {"3", "a schema is an object"}})
    EXPECT_NE(refused(schema).find(said), std::string::npos) << schema << ": " << refused(schema);
}

}  // namespace
}  // namespace heddle
