// Mistral: [TOOL_CALLS] and a list of objects, or [TOOL_CALLS]name[ARGS]{} for each call, perhaps with [CALL_ID]id between.
#include "heddle/text/calls/forms.h"
#include "heddle/text/calls/json_calls.h"

namespace heddle {
namespace {

constexpr std::string_view kToolCalls = "[TOOL_CALLS]";

class MistralCalls : public JsonCalls {
 public:
  MistralCalls() : JsonCalls({.begin = kToolCalls}) {}

 protected:
  void read_head(CallCursor& cursor, Where where, Head& head) override {
    if (where == Where::kNext && is_named_) return void(cursor.fail());
    if (where == Where::kNext) return JsonCalls::read_head(cursor, where, head);
    cursor.take(kToolCalls);
    cursor.skip_spaces();
    const char next = cursor.peek();
    is_named_ = next != '[' && next != '{';
    if (!is_named_) return read_calls(cursor, head);
    head.name = cursor.take_name("_-.");
    if (cursor.take_if("[CALL_ID]")) cursor.take_name("_-");
    cursor.take_if("[ARGS]");
    cursor.skip_spaces();
    cursor.expect('{');
  }
  void close_call(CallCursor& cursor) override {
    if (!is_named_) JsonCalls::close_call(cursor);
  }
  void close_all(CallCursor& cursor) override {
    if (!is_named_) JsonCalls::close_all(cursor);
  }
  std::string_view closing_mark() const override { return kToolCalls; }

 private:
  bool is_named_ = false;
};

}  // namespace

std::unique_ptr<CallReader> read_mistral(const Json&) {
  return std::make_unique<MistralCalls>();
}

}  // namespace heddle
