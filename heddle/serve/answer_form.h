// Writes answers as one of the endpoints has them, whole or as server-sent events.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/serve/answer_parts.h"
#include "heddle/serve/api_error.h"
#include "heddle/serve/asked.h"

namespace heddle {

// An answer so far.
struct MadeAnswer {
  std::vector<AnswerPart> parts;
  std::string reason;               // Answer::reason(), or "calls"; empty until its end
  std::string stop;                 // the stop string that ended it
  std::vector<AnswerToken> tokens;  // with log-probabilities, where they are wanted
  size_t count = 0;                 // tokens, with the one that ended it
  size_t reasoning_count = 0;       // tokens with which reasoning came

  std::string joined(AnswerPart::Kind kind) const;  // the text of all parts of a kind
  bool has(AnswerPart::Kind kind) const;
};

// Log-probabilities of a prompt's tokens from the second on.
using PromptScores = std::vector<TokenLogprobs>;

struct MadeAnswers {
  std::vector<MadeAnswer> answers;                                 // the first prompt's, and so on
  std::vector<PromptScores> scores;                                // each prompt's, where they are wanted
  size_t prompt_tokens = 0, cached_tokens = 0, answer_tokens = 0;  // cached: of the prompts, not computed
};

class AnswerForm {
 public:
  virtual ~AnswerForm() = default;
  virtual ErrorForm errors() const { return ErrorForm::kOpenAi; }
  virtual Json whole(const MadeAnswers& made) const = 0;
  virtual const char* call_prefix() const { return "call_"; }  // before ids
  // Events: before the first token, for a token of answer `index` and what it added to the parts of `made`, and after the last.
  virtual std::string begin() = 0;
  virtual std::string token(size_t index, const AnswerToken& token, const MadeAnswer& made,
                            const std::vector<PartEvent>& events) = 0;
  virtual std::string end(const MadeAnswers& made) = 0;
  virtual std::string failed(const ApiError& error) const;
};

// "data: JSON", after "event: NAME" where there is a name.
std::string event(const Json& data, const char* name = nullptr);
i64 seconds_since_1970();
// JSON has no infinity: less likely than this is written as this.
constexpr float kLeastLogprob = -9999;
float written_logprob(float value);

// `asked` and `model` outlive the forms.
std::unique_ptr<AnswerForm> completion_form(const Asked& asked, const ServedModel& model);
std::unique_ptr<AnswerForm> chat_form(const Asked& asked, const ServedModel& model);
std::unique_ptr<AnswerForm> message_form(const Asked& asked, const ServedModel& model);
std::unique_ptr<AnswerForm> response_form(const Asked& asked, const ServedModel& model);

}  // namespace heddle
