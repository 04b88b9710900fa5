// DeepSeek V3 and R1: kind, name and a fenced block of JSON between marks. V3.1: name and JSON.
#include "heddle/text/calls/forms.h"

namespace heddle {
namespace {

constexpr std::string_view kAllBegin = "<｜tool▁calls▁begin｜>", kAllEnd = "<｜tool▁calls▁end｜>",
                           kCallBegin = "<｜tool▁call▁begin｜>", kCallEnd = "<｜tool▁call▁end｜>",
                           kSeparator = "<｜tool▁sep｜>", kFence = "```";
constexpr size_t kMostName = 256;

class DeepSeekCalls : public CallReader {
 public:
  DeepSeekCalls() : CallReader("<") {}

 protected:
  void read_head(CallCursor& cursor, Where where, Head& head) override {
    if (where != Where::kNext) cursor.take_if(kAllBegin);
    cursor.skip_spaces();
    cursor.take(kCallBegin);
    auto name = cursor.take_until(kSeparator, kMostName);
    if (cursor.peek() != '{') {
      name = cursor.take_until("\n", kMostName);
      cursor.skip_spaces();
      if (cursor.take_if(kFence)) cursor.take_if("json");
      cursor.skip_spaces();
    }
    cursor.expect('{');
    head.name = name.value_or("");
    if (head.name.empty() && cursor.ok()) cursor.fail();
  }
  void close_call(CallCursor& cursor) override {
    cursor.skip_spaces();
    cursor.take_if(kFence);
    cursor.skip_spaces();
    cursor.take_if(kCallEnd);
  }
  void close_all(CallCursor& cursor) override {
    cursor.skip_spaces();
    cursor.take_if(kAllEnd);
  }
  std::string_view closing_mark() const override { return kCallEnd; }
};

}  // namespace

std::unique_ptr<CallReader> read_deepseek(const Json&) {
  return std::make_unique<DeepSeekCalls>();
}

}  // namespace heddle
