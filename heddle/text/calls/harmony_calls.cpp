// gpt-oss: a message on a channel, to a function. The reader of reasoning (text/reasoning.h) leaves such messages as they are.
#include "heddle/text/calls/forms.h"

namespace heddle {
namespace {

constexpr std::string_view kTo = "to=functions.", kCall = "<|call|>";
constexpr size_t kMostHeader = 512;

class HarmonyCalls : public CallReader {
 public:
  HarmonyCalls() : CallReader("<") {}

 protected:
  void read_head(CallCursor& cursor, Where, Head& head) override {
    cursor.take("<|channel|>");
    const std::string_view header = cursor.take_until("<|message|>", kMostHeader).value_or("");
    if (!cursor.ok()) return;
    cursor.skip_spaces();
    cursor.expect('{');
    const size_t to = header.find(kTo);
    if (to == std::string_view::npos) return void(cursor.fail());
    const std::string_view name = header.substr(to + kTo.size());
    head.name = name.substr(0, name.find_first_of(" <"));
    if (head.name.empty()) cursor.fail();
  }
  void close_call(CallCursor& cursor) override {
    cursor.skip_spaces();
    cursor.take_if(kCall);
  }
  std::string_view closing_mark() const override { return kCall; }
};

}  // namespace

std::unique_ptr<CallReader> read_harmony(const Json&) {
  return std::make_unique<HarmonyCalls>();
}

}  // namespace heddle
