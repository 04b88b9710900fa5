// Calls with a tag for each argument: Qwen3-Coder's, GLM's, MiniMax's, Seed's. A value is JSON, or a text without quotes: the
// tool's schema says which.
#include <algorithm>

#include "heddle/base/json_view.h"
#include "heddle/text/calls/forms.h"

namespace heddle {
namespace {

bool may_be(const Json& types, std::string_view name) {
  if (types.is_string()) return types.as_string() == name;
  return types.is_array() && std::ranges::find(types.items(), Json(name)) != types.items().end();
}

std::string json_of(std::string_view text) {
  while (!text.empty() && is_call_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_call_space(text.back())) text.remove_suffix(1);
  for (const auto& [python, json] : {std::pair("True", "true"), {"False", "false"}, {"None", "null"}})
    if (text == python) return json;
  CallCursor cursor(text, true);
  const bool is_json = cursor.take_json() && cursor.rest().empty();
  return is_json ? std::string(text) : Json(text).dump();
}

class TaggedCalls : public CallReader {
 public:
  TaggedCalls(const TagMarks& marks, const Json& tools) : CallReader("<"), marks_(marks), tools_(tools) {}

 protected:
  void read_head(CallCursor& cursor, Where where, Head& head) override {
    if (where == Where::kNext) {
      if (marks_.name_begin.empty()) return void(cursor.fail());
    } else if (!cursor.take_if(marks_.begin) && !marks_.can_lack_begin && cursor.ok()) {
      return void(cursor.fail());
    }
    cursor.skip_spaces();
    cursor.take(marks_.name_begin);
    head.name = cursor.take_name("_-.:");
    cursor.take(marks_.name_end);
    cursor.skip_spaces();
    cursor.expect(marks_.key_begin, marks_.call_end);
    properties_ = Json();
    for (const Json& tool : tools_.items()) {
      const Json& function = tool.at("function");
      const Json* schema = function.at("name") == Json(head.name) ? function.find("parameters") : nullptr;
      const Json* properties = schema ? schema->find("properties") : nullptr;
      if (properties) properties_ = *properties;
    }
    state_ = State::kFirst;
  }

  bool read_arguments(CallCursor& cursor, bool is_whole) override {
    for (;;) {
      switch (state_) {
        case State::kFirst:
        case State::kNext:
          if (read_key(cursor)) continue;
          if (state_ == State::kEnd) return true;
          if (is_whole) cursor.skip(cursor.rest().size());  // a tag that was cut
          return false;
        case State::kText:
          if (!read_text(cursor, is_whole)) return false;
          break;
        case State::kOther:
          if (!read_other(cursor, is_whole)) return false;
          break;
        case State::kEnd:
          return true;
      }
    }
  }
  void close_call(CallCursor&) override {}  // its end is read with the arguments
  void close_all(CallCursor& cursor) override {
    if (marks_.end.empty()) return;
    cursor.skip_spaces();
    cursor.take_if(marks_.end);
  }

 private:
  enum class State { kFirst, kNext, kText, kOther, kEnd };

  // Reads up to a value; false at the end of the call, or where more must come.
  bool read_key(CallCursor& cursor) {
    CallCursor next = cursor;
    next.skip_spaces();
    next.take(marks_.key_begin);
    const auto key = next.take_until(marks_.key_end, 256);
    if (!marks_.value_begin.empty()) next.skip_spaces();
    next.take(marks_.value_begin);
    if (next.ok()) {
      cursor = next;
      write((state_ == State::kFirst ? "{" : ", ") + Json(*key).dump() + ": ");
      const Json* schema = properties_.find(*key);
      kind_ = schema ? tag_value_of(*schema) : TagValue::kOther;
      state_ = kind_ == TagValue::kText ? State::kText : State::kOther;
      if (kind_ == TagValue::kText) write("\"");
      at_begin_ = true;
      return true;
    }
    CallCursor end = cursor;
    end.skip_spaces();
    const bool ends = end.take(marks_.call_end);
    if (!ends && (next.fit() == Fit::kMore || end.fit() == Fit::kMore)) return false;
    // At the end of the answer, what begins a tag is a cut one.
    if (!ends && cursor.is_whole() && (end.rest().empty() || end.rest().front() == '<')) return false;
    if (ends) cursor = end;
    write(state_ == State::kFirst ? "{}" : "}");
    state_ = State::kEnd;
    return false;
  }

  bool read_text(CallCursor& cursor, bool is_whole) {
    if (cursor.rest().empty()) return false;
    if (std::exchange(at_begin_, false) && marks_.has_lines && cursor.rest().front() == '\n') cursor.skip(1);
    const std::string_view rest = cursor.rest();
    const size_t found = rest.find(marks_.value_end);
    const bool ends = found != std::string_view::npos;
    std::string_view text = rest.substr(0, ends ? found : rest.size() - begun_mark(rest, marks_.value_end));
    if (!ends && is_whole) text = rest;
    const size_t read = text.size();
    const bool has_line = marks_.has_lines && text.ends_with('\n') && (ends || !is_whole);
    write_text(text.substr(0, text.size() - has_line));
    cursor.skip(ends ? found + marks_.value_end.size() : read - has_line);
    if (!ends) return false;
    write("\"");
    state_ = State::kNext;
    return true;
  }

  bool read_other(CallCursor& cursor, bool is_whole) {
    const std::string_view rest = cursor.rest();
    const size_t found = rest.find(marks_.value_end);
    if (found == std::string_view::npos) {
      if (is_whole) {
        write(rest);
        cursor.skip(rest.size());
      }
      return false;
    }
    std::string_view text = rest.substr(0, found);
    if (marks_.has_lines && text.starts_with('\n')) text.remove_prefix(1);
    if (marks_.has_lines && text.ends_with('\n')) text.remove_suffix(1);
    write(kind_ == TagValue::kTextOrNull && text != "null" ? Json(text).dump() : json_of(text));
    cursor.skip(found + marks_.value_end.size());
    state_ = State::kNext;
    return true;
  }

  const TagMarks& marks_;
  const Json tools_;
  Json properties_;  // the called tool has these
  State state_ = State::kFirst;
  TagValue kind_ = TagValue::kOther;
  bool at_begin_ = false;  // nothing of the value was read
};

}  // namespace

TagValue tag_value_of(const Json& schema) {
  if (!schema.is_object()) return TagValue::kOther;
  if (const Json* types = schema.find("type")) {
    if (!may_be(*types, "string")) return TagValue::kOther;
    if (types->is_string() || types->size() == 1) return TagValue::kText;
    return types->size() == 2 && may_be(*types, "null") ? TagValue::kTextOrNull : TagValue::kOther;
  }
  for (const char* name : {"anyOf", "oneOf"}) {
    const Json* branches = schema.find(name);
    if (!branches || !branches->is_array()) continue;
    size_t texts = 0, nulls = 0;
    for (const Json& branch : branches->items()) {
      const Json* type = branch.find("type");
      texts += type && *type == Json("string");
      nulls += type && *type == Json("null");
    }
    if (texts == 0 || texts + nulls < branches->size()) return TagValue::kOther;
    return nulls > 0 ? TagValue::kTextOrNull : TagValue::kText;
  }
  const Json* values = schema.find("enum");
  const bool all_texts =
      values && values->is_array() && std::ranges::all_of(values->items(), &Json::is_string);
  return all_texts ? TagValue::kText : TagValue::kOther;
}

std::unique_ptr<CallReader> read_tags(const TagMarks& marks, const Json& tools) {
  return std::make_unique<TaggedCalls>(marks, tools);
}

}  // namespace heddle
