// The form that an answer must have, as OpenAI's response_format has it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "heddle/base/json_view.h"
#include "heddle/text/calls/call_form.h"
#include "heddle/text/grammar/answer_grammar.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

struct ResponseFormat {
  std::string written;                         // as it was read, in one line; "": any text
  std::shared_ptr<const JsonGrammar> grammar;  // null: any text

  bool operator==(const ResponseFormat& other) const { return written == other.written; }
};

// {"type": "text"}, {"type": "json_object"} or {"type": "json_schema", "json_schema": {"schema": {...}}}, where json_schema may be left
// out. Throws Error with the path to what is wrong, or to a keyword that is not done (text/grammar/schema_reader.h).
ResponseFormat read_response_format(const JsonView& value);

// A call of one of these functions, {"name": ..., "parameters": schema}, in a form that has pieces. Throws Error as above.
ResponseFormat call_format(const CallForm& form, const JsonView& functions, const Tokenizer& tokenizer,
                           std::span<const i32> ends);

// The format's grammar for a model's tokens, null for any text. What the last ones found out about tokens is kept.
std::shared_ptr<const AnswerGrammar> grammar_of(const ResponseFormat& format, const Tokenizer& tokenizer);

}  // namespace heddle
