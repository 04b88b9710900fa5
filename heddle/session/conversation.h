// A conversation with a model. Its tokens stay in the KV cache: a turn reads only what comes after the last one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/session/answer.h"
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
  // Opens a sequence of `engine`; all must outlive this. `slide`: where the context is full the oldest messages are
  // dropped; else a turn that does not fit is refused. Throws Error where a setting is out of its range, or where the
  // engine has no sequence left.
  Conversation(Engine& engine, const Tokenizer& tokenizer, const ChatTemplate& form, AnswerSettings settings,
               bool slide);

  // Adds the message, in UTF-8, and the answer, whose text goes to `on_text`. Where `stop` ends the turn, the
  // answer is what was made until then; before its first token the message is not kept either. Throws Error, and adds
  // nothing, where the template refuses the message or the context does not hold it; the same for what the engine or
  // `on_text` throws.
  TurnStats say(const std::string& message, const TextCallback& on_text = {},
                const StopCallback& stop = never_stop);

  void reset() { messages_.clear(); }  // the system text stays
  // What the model is told first, from the next turn on; empty: nothing.
  void set_system(std::string text) { system_ = std::move(text); }
  const std::string& system() const { return system_; }
  const std::vector<ChatMessage>& messages() const { return messages_; }

  // As a JSON file: {"messages": [{"role", "content"}, ..]}, with the system text first where there is one. Both
  // throw Error(kIo); load() keeps what was there then.
  void save(const std::string& path) const;
  void load(const std::string& path);

 private:
  std::vector<i32> tokens_of(std::span<const ChatMessage> messages) const;
  std::vector<i32> fit(TurnStats& stats);
  TurnStats take_turn(const TextCallback& on_text, const StopCallback& stop);
  i32 read(std::span<const i32> tokens, TurnStats& stats, Answer& answer, const StopCallback& stop);
  i32 step(std::span<const i32> tokens, bool wanted, Answer& answer);
  bool go_on(i32& token, Answer& answer, const StopCallback& stop);

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
