// Llama 3.1 and later: an answer that is {"name": "f", "parameters": {}}, perhaps after <|python_tag|>. Code after that mark is
// a call of the tool that runs Python, if there is one.
#include <algorithm>

#include "heddle/base/json_view.h"
#include "heddle/text/calls/forms.h"
#include "heddle/text/calls/json_calls.h"

namespace heddle {
namespace {

constexpr std::string_view kPythonTag = "<|python_tag|>";

class LlamaCalls : public JsonCalls {
 public:
  explicit LlamaCalls(ToolNames names)
      : JsonCalls({.begin = kPythonTag, .has_bare = true}, std::move(names)) {
    for (const char* name : {"code_interpreter", "ipython", "python"})
      if (this->names().contains(name)) runner_ = name;
  }

 protected:
  void read_head(CallCursor& cursor, Where where, Head& head) override {
    CallCursor code = cursor;
    JsonCalls::read_head(cursor, where, head);
    is_code_ = false;
    if (cursor.fit() != Fit::kNo || where == Where::kNext || runner_.empty() || !code.take(kPythonTag))
      return;
    code.skip_spaces();
    if (code.peek() == 0) return;
    head = {.name = runner_};
    cursor = code;
    is_code_ = true;
    has_begun_ = false;
  }
  // All that follows is code.
  bool read_arguments(CallCursor& cursor, bool is_whole) override {
    if (!is_code_) return JsonCalls::read_arguments(cursor, is_whole);
    if (!std::exchange(has_begun_, true)) write("{\"code\": \"");
    write_text(cursor.rest());
    cursor.skip(cursor.rest().size());
    if (is_whole) write("\"}");
    return is_whole;
  }
  void close_call(CallCursor& cursor) override {
    if (!is_code_) JsonCalls::close_call(cursor);
  }

 private:
  std::string runner_;  // the tool that runs Python
  bool is_code_ = false, has_begun_ = false;
};

}  // namespace

std::unique_ptr<CallReader> read_llama(const Json& tools) {
  ToolNames names;
  for (const Json& tool : tools.items()) names.insert(tool.at("function").at("name").as_string());
  return std::make_unique<LlamaCalls>(std::move(names));
}

}  // namespace heddle
