// A conversation with a model. Its tokens stay in the KV cache, so a turn reads only the new ones.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/session/answer.h"
#include "heddle/text/chat_template.h"

namespace heddle {

// Statistics of the last turn.
struct TurnStats {
  // tokens; `kept` tokens of the prompt were already in the KV cache
  size_t prompt = 0, kept = 0, answer = 0;
  double prompt_seconds = 0, answer_seconds = 0;
  i32 context = 0, left = 0;  // positions
  size_t dropped = 0;         // messages that were dropped from the context
  std::string reason;         // see Answer::reason
};

class Conversation {
 public:
  // Opens a sequence of `engine`. All arguments must outlive the conversation. `slide`: when the context is
  // full, the oldest messages are dropped; otherwise a turn that does not fit is refused. Throws Error when a
  // setting is out of its range, or when the engine has no free sequence.
  Conversation(Engine& engine, const Tokenizer& tokenizer, const ChatTemplate& form, AnswerSettings settings,
               bool slide);

  // Adds the message, in UTF-8, and the answer, whose text goes to `on_text`, and its reasoning to `on_reasoning`
  // (text/reasoning.h). Both are kept, and the template says what of them the model reads again. If `stop` ends the turn, the
  // answer is the text so far; before its first token the message is dropped too. Throws Error, and adds
  // nothing, when the template refuses the message, when the context cannot hold it, or when the engine or
  // `on_text` throws.
  TurnStats say(const std::string& message, const TextCallback& on_text = {},
                const StopCallback& stop = never_stop, const TextCallback& on_reasoning = {});

  void reset() { messages_.clear(); }  // the system text stays
  // The instruction that the model gets first, from the next turn on; empty: none.
  void set_system(std::string text) { system_ = std::move(text); }
  const std::string& system() const { return system_; }
  // Variables for the template, such as enable_thinking, from the next turn on: an object.
  void set_variables(Json variables) { variables_ = std::move(variables); }
  const std::vector<ChatMessage>& messages() const { return messages_; }

  // A conversation as a JSON file: {"messages": [{"role", "content", "reasoning_content" if there is some}, ..]}, with
  // the system text first if there is one. Both throw Error(kIo); a failed load() changes nothing.
  void save(const std::string& path) const;
  void load(const std::string& path);

 private:
  std::string text_of(std::span<const ChatMessage> messages) const;
  std::vector<i32> fit(TurnStats& stats, std::string& text);
  TurnStats take_turn(const TextCallback& on_text, const StopCallback& stop,
                      const TextCallback& on_reasoning);
  i32 read(std::span<const i32> tokens, TurnStats& stats, Answer& answer, const StopCallback& stop);
  i32 step(std::span<const i32> tokens, bool wanted, Answer& answer);
  bool go_on(i32& token, Answer& answer, const StopCallback& stop);

  Engine& engine_;
  const Tokenizer& tokenizer_;
  const ChatTemplate& form_;
  AnswerSettings settings_;
  bool slide_;
  const ReasoningForm* reasoning_;
  std::string system_;
  Json variables_ = Json::object();
  std::vector<ChatMessage> messages_;  // user and assistant alternate
  OpenSequence sequence_;
};

}  // namespace heddle
