// An answer as its parts: reasoning, text, calls of tools. Tells what each token adds to them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/session/token_stream.h"
#include "heddle/text/calls/call_form.h"

namespace heddle {

struct AnswerPart {
  enum class Kind { kReasoning, kText, kCall };
  Kind kind;
  std::string text = {};           // a call has its arguments here: JSON, if the model wrote it well
  std::string id = {}, name = {};  // for calls
};

struct PartEvent {
  enum class Step { kBegin, kMore, kEnd };
  Step step;
  size_t part;            // its place among the answer's
  std::string text = {};  // what kMore adds
};

// Calls that a request allows.
struct AskedCalls {
  const CallForm* form = nullptr;  // null: none are told from text
  Json tools = Json::array();      // in OpenAI's form
  bool only_one = false;           // the answer ends after its first call
};

// A name that no other request has: "chatcmpl-0f3a...".
std::string request_name(const char* prefix);

class PartsReader {
 public:
  // `calls` outlives the reader. The ids of calls begin with `id_prefix`, if the form does not say how they are.
  PartsReader(const AskedCalls& calls, const char* id_prefix);

  // Adds what came with a token; all of it with the last.
  std::vector<PartEvent> read(const AnswerToken& token, std::vector<AnswerPart>& parts);
  // The first call has ended, and no other is wanted.
  bool is_over() const { return is_over_; }

 private:
  void add(AnswerPart::Kind kind, const std::string& text);
  void add_call(const CallEvent& event);
  void open(AnswerPart part);
  void close();
  std::string call_id() const;

  const AskedCalls& calls_;
  const char* const id_prefix_;
  std::unique_ptr<CallReader> reader_;
  bool is_open_ = false, is_over_ = false;
  // While it reads a token.
  std::vector<AnswerPart>* parts_ = nullptr;
  std::vector<PartEvent> events_;
};

}  // namespace heddle
