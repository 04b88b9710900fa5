#include "heddle/session/answer_format.h"

#include <list>
#include <mutex>

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
