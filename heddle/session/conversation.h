// A conversation with a model. Its tokens stay in the KV cache: a turn reads only what is behind the last one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/heddle/support/answer.h"
#include "heddle/text/chat_template.h"

namespace heddle {

// What the last turn took.
struct TurnStats {
  size_t prompt = 0, kept = 0, answer = 0;  // tokens; `kept` of the prompt were in the KV cache
  double prompt_seconds = 0, answer_seconds = 0;
  i32 context = 0, left = 0;  // positions
  size_t dropped = 0;         // messages that slid out of the context
  std::string reason;         // see Answer::reason
};

class Conversation {
 public:
  // All must outlive this. `slide`: where the context is full the oldest messages are dropped; else a turn that does
  // not fit is refused.
  Conversation(Engine& engine, const Tokenizer& tokenizer, const ChatTemplate& form, AnswerSettings settings,
               bool slide);

  // Adds the message and the answer, whose text goes to `on_text` as it is made. Throws Error, and adds nothing, where
  // the template refuses it or the context does not hold it.
  TurnStats say(const std::string& message, const std::function<void(const std::string&)>& on_text);

  void reset() { messages_.clear(); }
  void set_system(std::string text) { system_ = std::move(text); }
  const std::string& system() const { return system_; }
  const std::vector<ChatMessage>& messages() const { return messages_; }

  // As a JSON file; load() throws Error(kIo) where it is none, and keeps what was.
  void save(const std::string& path) const;
  void load(const std::string& path);

 private:
  std::vector<i32> tokens_of(std::span<const ChatMessage> messages) const;
  std::vector<i32> fit(TurnStats& stats);
  i32 read(std::span<const i32> tokens, TurnStats& stats, Answer& answer);
  i32 step(std::span<const i32> tokens, bool wanted, Answer& answer);
  bool go_on(i32& token, Answer& answer);

  Engine& engine_;
  const Tokenizer& tokenizer_;
  const ChatTemplate& form_;
  AnswerSettings settings_;
  bool slide_;
  std::string system_;
  std::vector<ChatMessage> messages_;  // user and assistant in turns
  OpenSequence sequence_;
};

}  // namespace heddle
