// Calls that are JSON objects with a name and arguments, one by one or in a list.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "heddle/text/calls/call_reader.h"

namespace heddle {

struct JsonMarks {
  std::string_view begin;     // before each object or list
  std::string_view end = {};  // after it, if the form has one
  // An answer may begin with an object without the mark. It is a call if its name is one of these and it has arguments.
  const std::set<std::string, std::less<>>* bare_names = nullptr;
};

class JsonCalls : public CallReader {
 public:
  explicit JsonCalls(const JsonMarks& marks)
      : CallReader(marks.bare_names ? "<{" : marks.begin.substr(0, 1)), marks_(marks) {}

 protected:
  void read_head(CallCursor& cursor, Where where, Head& head) override;
  void close_call(CallCursor& cursor) override;
  void close_all(CallCursor& cursor) override;
  std::string_view closing_mark() const override { return marks_.end; }
  // The rest of a head: a list or an object.
  void read_calls(CallCursor& cursor, Head& head);

 private:
  void read_object(CallCursor& cursor, bool is_bare, Head& head);

  const JsonMarks marks_;
  bool in_list_ = false;
  bool in_object_ = false;  // the arguments were not the object's last member
};

}  // namespace heddle
