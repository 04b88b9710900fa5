// The readers of the forms; each has a file of its own. Tools are in OpenAI's form.
#pragma once

#include <memory>
#include <string_view>

#include "heddle/text/calls/call_reader.h"

namespace heddle {

class Json;

std::unique_ptr<CallReader> read_llama(const Json& tools);
std::unique_ptr<CallReader> read_mistral(const Json& tools);
std::unique_ptr<CallReader> read_deepseek(const Json& tools);
std::unique_ptr<CallReader> read_harmony(const Json& tools);

// A value between tags: a text without quotes, such a text or null, or JSON. The tool's schema of it says which.
enum class TagValue { kText, kTextOrNull, kOther };
TagValue tag_value_of(const Json& schema);

// A call with a tag for each argument.
struct TagMarks {
  std::string_view begin, end;  // around calls
  std::string_view name_begin, name_end, call_end;
  std::string_view key_begin, key_end, value_begin, value_end;
  bool has_lines = false;  // a line break after value_begin and one before value_end are no part of the value
  bool can_lack_begin = false;
};
// `marks` outlive the reader.
std::unique_ptr<CallReader> read_tags(const TagMarks& marks, const Json& tools);

// Gemma's: call:name{key:value}, with its own quotes.
struct GemmaMarks {
  std::string_view begin, end, quote;
};
std::unique_ptr<CallReader> read_gemma(const GemmaMarks& marks);

}  // namespace heddle
