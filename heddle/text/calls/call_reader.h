// Tells calls of tools from text, in what a model writes, piece by piece. Each form (call_form.h) derives a reader.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/text/calls/cursor.h"
#include "heddle/text/calls/json_scanner.h"

namespace heddle {

struct CallEvent {
  enum class Kind { kText, kBegin, kArguments, kEnd };
  Kind kind;
  std::string text = {};  // with kBegin the function's name, with kArguments a piece of a JSON text
  bool operator==(const CallEvent&) const = default;
};

// A call begins when its name is certain and its arguments begin. Until then its text is held back, and comes out as it is if
// it turns out to be none. Arguments come as the model writes them: those that are no JSON as they are, up to the mark that
// ends the call or the end of the answer. White space around calls is no part of the text.
class CallReader {
 public:
  CallReader(const CallReader&) = delete;
  CallReader& operator=(const CallReader&) = delete;
  virtual ~CallReader() = default;

  // The events that are now certain. They depend on the text alone, but for where texts and arguments are cut: between
  // characters.
  std::vector<CallEvent> push(std::string_view text);
  // The rest, at the end of the answer. A call that has begun ends.
  std::vector<CallEvent> flush();

 protected:
  enum class Where {
    kStart,  // nothing but white space comes before
    kLater,
    kNext  // a call has just ended
  };
  struct Head {
    std::string name;
    std::optional<std::string> arguments = {};  // if they are a part of what was read
  };

  // `first`: bytes with which calls begin.
  explicit CallReader(std::string_view first) : first_(first) {}

  // Reads what comes before the arguments of a call. Where the cursor fails, there is no call. It is called again with the same
  // text and more.
  virtual void read_head(CallCursor& cursor, Where where, Head& head) = 0;
  // Reads arguments, write()s them, and returns true at their end. Otherwise it reads all that is certain, which is all that
  // there is if `is_whole`.
  virtual bool read_arguments(CallCursor& cursor, bool is_whole);
  // Takes what ends a call, and after the last of several what ends them all, if it is there.
  virtual void close_call(CallCursor& cursor) = 0;
  virtual void close_all(CallCursor&) {}
  // The mark up to which arguments go that are no JSON; empty: there is none.
  virtual std::string_view closing_mark() const { return {}; }

  void write(std::string_view arguments) { add(CallEvent::Kind::kArguments, arguments); }
  // Writes a part of a JSON string, without its quotes.
  void write_text(std::string_view text);

 private:
  enum class State { kText, kArguments, kClosing, kNext };
  void run();
  bool read_text();
  bool read_next();
  void begin(const Head& head);
  void end();
  void add(CallEvent::Kind kind, std::string_view text);

  const std::string_view first_;
  State state_ = State::kText;
  bool at_start_ = true, after_call_ = false, is_whole_ = false;
  bool is_broken_ = false;  // the arguments are no JSON
  JsonScanner scanner_;     // reads the arguments
  std::string tail_;        // an incomplete character
  std::string held_;
  std::vector<CallEvent> events_;
};

}  // namespace heddle
