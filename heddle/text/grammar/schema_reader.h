// Reads a JSON Schema into a grammar. What the grammar makes is valid; what it does not do is refused with its name and path.
// It narrows a schema in these ways:
// - An object has the properties in the schema's order, and others after them only where `additionalProperties` says so, or where the schema
//   names none.
// - Where `type` is missing, other keywords say which types there are; without any, all are.
// - Strings with `pattern`, `format`, `enum` or `const`, and keys, have one spelling: escapes only where they must be.
// - Between two parts comes nothing, a space, or a line's end and what indents the next line.
// - Numbers: see json_leaves.h. Objects and arrays lie at most JsonGrammar::kMostDepth deep.
#pragma once

#include <span>

#include "heddle/base/json_view.h"
#include "heddle/text/calls/call_form.h"
#include "heddle/text/grammar/json_grammar.h"

namespace heddle {

// Throws Error(kUnsupported) for a keyword that is not done, and Error(kIo) for a schema that is wrong, both with the path.
JsonGrammar read_schema(const JsonView& schema);
// Any object of JSON.
JsonGrammar any_object();

// A tool that a model may call: the text around its arguments, and their schema.
struct CalledTool {
  CallPieces pieces;
  JsonView arguments;
};
// One call of one of these tools. Throws as read_schema() does. Where arguments have tags, so do those of `properties` alone, in
// their order, and strings are any text without the mark that ends them.
JsonGrammar read_calls(std::span<const CalledTool> tools);

}  // namespace heddle
