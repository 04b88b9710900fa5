// The forms in which models write calls of tools. A model's chat template names one by its marks.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "heddle/text/calls/call_reader.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

class Json;

// The text of a call around its arguments, for those that make a model write one.
struct CallPieces {
  std::string begin, end;  // before and after the arguments
  // Between the two stands an object (kJson), or for each argument tags[0], its key, tags[1], its value, tags[2] (kTags). There
  // a string is written as it is, and any other value as JSON.
  enum class Style { kJson, kTags } style = Style::kJson;
  std::array<std::string, 3> tags = {};
};

struct CallForm {
  std::string_view name;  // in docs/serving.md
  std::array<std::string_view, 2>
      signs;  // a template that has them all has this form; empty ones count for nothing
  std::array<std::string_view, 6> tokens =
      {};  // marks that a tokenizer may have as special tokens, which decoding leaves out
  std::unique_ptr<CallReader> (*reader)(const Json& tools);
  CallPieces (*pieces)(std::string_view name) = nullptr;  // null: no call can be forced
  bool has_short_ids = false;  // the template refuses ids that are not nine letters or digits
};

// The form of a template that is used with tools, or else of the tokenizer's tokens, if the template reads tools at all; null
// if there is none.
const CallForm* find_call_form(std::string_view chat_template, const Tokenizer& tokenizer);
bool reads_tools(std::string_view chat_template);
std::span<const CallForm> call_forms();
std::string call_form_names();  // with commas

}  // namespace heddle
