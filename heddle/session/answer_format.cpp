#include "heddle/session/answer_format.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/text/grammar/schema_reader.h"

namespace heddle {

ResponseFormat read_response_format(const JsonView& value) {
  const JsonView type = value.at("type");
  type.check_one_of({"text", "json_object", "json_schema"});
  if (type.as_string() == "text") return {};
  ResponseFormat made{.written = value.value().dump(), .grammar = {}};
  if (type.as_string() == "json_object") {
    made.grammar = std::make_shared<const JsonGrammar>(any_object());
  } else {
    const auto described = value.find("json_schema");
    const JsonView schema = described ? described->at("schema") : value.at("schema");
    made.grammar = std::make_shared<const JsonGrammar>(read_schema(schema));
  }
  return made;
}

namespace {

// The schema of a function's arguments. One that names none takes none.
const Json& parameters_of(const JsonView& function) {
  static const Json none = Json::object({{"type", "object"}, {"additionalProperties", false}});
  const auto schema = function.find("parameters");
  if (!schema) return none;
  const auto properties = schema->is_object() ? schema->find("properties") : std::nullopt;
  const bool is_empty = properties && properties->size() == 0 && !schema->contains("additionalProperties");
  return is_empty ? none : schema->value();
}

}  // namespace

ResponseFormat call_format(const CallForm& form, const JsonView& functions, const Tokenizer& tokenizer,
                           std::span<const i32> ends) {
  if (!form.pieces)
    functions.fail(ErrorCode::kUnsupported,
                   fmt::format("calls of the form {} are not forced yet; tool_choice auto works", form.name));
  // Marks that are special tokens are written as these.
  const auto marked = [&](std::string text) {
    for (const std::string_view mark : form.tokens) {
      const auto token = mark.empty() ? std::nullopt : tokenizer.token_to_id(mark);
      if (!token || !(tokenizer.is_special(*token) || tokenizer.is_skipped(*token))) continue;
      for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += mark.size() + 1)
        text.insert(at, 1, TokenTrie::kSpecial);
      // Where the last mark is an end of answers, it is chosen as that.
      if (text.ends_with(mark) && std::ranges::find(ends, *token) != ends.end())
        text.resize(text.size() - mark.size() - 1);
    }
    return text;
  };
  std::vector<CalledTool> tools;
  std::list<std::string> names;  // for errors
  functions.for_each_item([&](const JsonView& function) {
    const JsonView name = function.at("name");
    CallPieces pieces = form.pieces(name.as_string());
    for (std::string* text : {&pieces.begin, &pieces.end, &pieces.tags[0], &pieces.tags[1], &pieces.tags[2]})
      *text = marked(std::move(*text));
    names.push_back("parameters of " + name.as_string());
    tools.push_back({std::move(pieces), JsonView(parameters_of(function), names.back())});
  });
  const Json written = Json::object({{"form", form.name}, {"functions", functions.value()}});
  return {.written = written.dump(), .grammar = std::make_shared<const JsonGrammar>(read_calls(tools))};
}

std::shared_ptr<const AnswerGrammar> grammar_of(const ResponseFormat& format, const Tokenizer& tokenizer) {
  if (!format.grammar) return nullptr;
  struct Known {
    std::string written;
    std::shared_ptr<const TokenTrie> trie;
    std::shared_ptr<const AnswerGrammar> grammar;
  };
  constexpr size_t kMost = 8;
  static std::mutex mutex;
  static std::list<Known> known;  // the last one that was asked for comes first
  const auto trie = tokenizer.trie();
  const std::lock_guard lock(mutex);
  for (auto one = known.begin(); one != known.end(); ++one)
    if (one->trie == trie && one->written == format.written) {
      known.splice(known.begin(), known, one);
      return one->grammar;
    }
  known.push_front({format.written, trie, std::make_shared<const AnswerGrammar>(*format.grammar, trie)});
  if (known.size() > kMost) known.pop_back();
  return known.front().grammar;
}

}  // namespace heddle
