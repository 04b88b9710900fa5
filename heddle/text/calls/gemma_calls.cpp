// Gemma: call:name{key:value,...} between marks. Keys have no quotes, and strings those of the form; else values are as in JSON.
#include "heddle/base/json_view.h"
#include "heddle/text/calls/forms.h"

namespace heddle {
namespace {

class GemmaCalls : public CallReader {
 public:
  explicit GemmaCalls(const GemmaMarks& marks) : CallReader("<"), marks_(marks) {}

 protected:
  void read_head(CallCursor& cursor, Where where, Head& head) override {
    if (where == Where::kNext) return void(cursor.fail());
    cursor.take(marks_.begin);
    cursor.take("call:");
    head.name = cursor.take_name("_-.");
    cursor.expect('{');
    open_.clear();
    in_text_ = in_key_ = false;
  }

  bool read_arguments(CallCursor& cursor, bool is_whole) override {
    while (cursor.ok() && !cursor.rest().empty()) {
      if (in_text_ ? !read_text(cursor, is_whole) : !read_token(cursor)) break;
      if (open_.empty()) return true;
    }
    if (is_whole && !in_text_) write(cursor.rest());
    if (is_whole) cursor.skip(cursor.rest().size());
    return false;
  }
  void close_call(CallCursor& cursor) override {
    cursor.skip_spaces();
    cursor.take_if(marks_.end);
  }

 private:
  // Reads inside of quotes; false where more must come.
  bool read_text(CallCursor& cursor, bool is_whole) {
    const std::string_view rest = cursor.rest();
    const size_t found = rest.find(marks_.quote);
    const bool ends = found != std::string_view::npos;
    const size_t held = is_whole ? 0 : begun_mark(rest, marks_.quote);
    write_text(rest.substr(0, ends ? found : rest.size() - held));
    cursor.skip(ends ? found + marks_.quote.size() : rest.size() - held);
    if (!ends) return false;
    write("\"");
    in_text_ = false;
    return true;
  }

  bool read_token(CallCursor& cursor) {
    const char byte = cursor.rest().front();
    const bool in_object = !open_.empty() && open_.back() == '{';
    if (is_call_space(byte)) return cursor.skip(1), true;
    if (byte == '<') {
      CallCursor quote = cursor, end = cursor;
      if (quote.take(marks_.quote)) {
        cursor = quote;
        write("\"");
        return in_text_ = true;
      }
      if (end.take(marks_.end)) return open_.clear(), true;  // before the last bracket
      if (quote.fit() == Fit::kMore || end.fit() == Fit::kMore) return false;
    }
    if (std::string_view("{}[],:").find(byte) == std::string_view::npos) return read_word(cursor, in_object);
    cursor.skip(1);
    write(byte == ',' ? ", " : byte == ':' ? ": " : std::string_view(&byte, 1));
    if (byte == '{' || byte == '[') open_ += byte;
    if ((byte == '}' || byte == ']') && !open_.empty()) open_.pop_back();
    in_key_ = byte == '{' || (byte == ',' && in_object);
    return true;
  }

  // A key, or a value without quotes.
  bool read_word(CallCursor& cursor, bool in_object) {
    const std::string_view rest = cursor.rest();
    const size_t end = rest.find_first_of(in_key_ && in_object ? ":,{}[]<" : ",{}[]<", 1);
    if (end == std::string_view::npos) return false;
    std::string_view word = rest.substr(0, end);
    while (is_call_space(word.back())) word.remove_suffix(1);
    CallCursor json(word, true);
    const bool is_json = !in_key_ && json.take_json() && json.rest().empty();
    write(is_json ? std::string(word) : Json(word).dump());
    cursor.skip(end);
    return true;
  }

  const GemmaMarks marks_;
  std::string open_;  // brackets
  bool in_text_ = false, in_key_ = false;
};

}  // namespace

std::unique_ptr<CallReader> read_gemma(const GemmaMarks& marks) {
  return std::make_unique<GemmaCalls>(marks);
}

}  // namespace heddle
