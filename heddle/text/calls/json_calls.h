// Calls that are JSON objects with a name and arguments, one by one or in a list.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "heddle/text/calls/call_reader.h"

namespace heddle {

struct JsonMarks {
  std::string_view begin;     // before each object or list
  std::string_view end = {};  // after it, if the form has one
  // An answer may begin with an object without the mark. It is a call if a tool has its name and it has arguments.
  bool has_bare = false;
};

using ToolNames = std::set<std::string, std::less<>>;

class JsonCalls : public CallReader {
 public:
  explicit JsonCalls(const JsonMarks& marks, ToolNames names = {})
      : CallReader(marks.has_bare ? "<{" : marks.begin.substr(0, 1)),
        marks_(marks),
        names_(std::move(names)) {}

 protected:
  void read_head(CallCursor& cursor, Where where, Head& head) override;
  void close_call(CallCursor& cursor) override;
  void close_all(CallCursor& cursor) override;
  std::string_view closing_mark() const override { return marks_.end; }
  // The rest of a head: a list or an object.
  void read_calls(CallCursor& cursor, Head& head);
  const ToolNames& names() const { return names_; }

 private:
  void read_object(CallCursor& cursor, bool is_bare, Head& head);

  const JsonMarks marks_;
  const ToolNames names_;
  bool in_list_ = false;
  bool in_object_ = false;  // the arguments were not the object's last member
};

}  // namespace heddle
