#include "heddle/text/calls/json_calls.h"

namespace heddle {

void JsonCalls::read_head(CallCursor& cursor, Where where, Head& head) {
  if (where == Where::kNext) {
    // Without a list, only a model that writes no marks has a separator.
    if (!in_list_ && !marks_.has_bare) return void(cursor.fail());
    cursor.take(in_list_ ? "," : ";");
    cursor.skip_spaces();
    return read_object(cursor, !in_list_, head);
  }
  const bool is_bare = marks_.has_bare && where == Where::kStart && cursor.peek() == '{';
  if (is_bare) {
    in_list_ = false;
    return read_object(cursor, true, head);
  }
  cursor.take(marks_.begin);
  read_calls(cursor, head);
}

void JsonCalls::read_calls(CallCursor& cursor, Head& head) {
  cursor.skip_spaces();
  in_list_ = cursor.take_if("[");
  cursor.skip_spaces();
  read_object(cursor, false, head);
}

void JsonCalls::read_object(CallCursor& cursor, bool is_bare, Head& head) {
  bool has_arguments = false;
  cursor.take("{");
  do {
    const auto key = cursor.take_json_text();
    cursor.skip_spaces();
    cursor.take(":");
    cursor.skip_spaces();
    if (!key || !cursor.ok()) return;
    const bool is_name = *key == "name" || *key == "tool_name";
    const bool is_arguments = *key == "arguments" || *key == "parameters";
    const char first = cursor.peek();
    if (is_name) {
      head.name = cursor.take_json_text().value_or("");
    } else if (is_arguments && first == '"') {  // JSON in JSON
      head.arguments = cursor.take_json_text();
    } else if (is_arguments && first != 0) {
      if (first != '{') return void(cursor.fail());
      if (!head.name.empty() && (!is_bare || names_.contains(head.name))) {
        in_object_ = true;
        return;
      }
      if (const auto value = cursor.take_json()) head.arguments = *value;
    } else {
      cursor.take_json();
    }
    has_arguments |= is_arguments;
    cursor.skip_spaces();
  } while (cursor.take_if(","));
  cursor.take("}");
  in_object_ = false;
  if (!head.arguments) head.arguments = "{}";
  const bool is_call = is_bare ? has_arguments && names_.contains(head.name) : !head.name.empty();
  if (cursor.ok() && !is_call) cursor.fail();
}

void JsonCalls::close_call(CallCursor& cursor) {
  if (!in_object_) return;
  cursor.skip_spaces();
  while (cursor.take_if(",")) {
    cursor.take_json_text();
    cursor.skip_spaces();
    cursor.take(":");
    cursor.take_json();
    cursor.skip_spaces();
  }
  cursor.take_if("}");
}

void JsonCalls::close_all(CallCursor& cursor) {
  cursor.skip_spaces();
  if (in_list_) cursor.take_if("]");
  cursor.skip_spaces();
  if (!marks_.end.empty()) cursor.take_if(marks_.end);
}

}  // namespace heddle
