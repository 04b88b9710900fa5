// The chat template of a model: a text in a subset of Jinja (jinja/) that writes a conversation as the model
// was trained to read it. render() gives the result of transformers' apply_chat_template(tokenize=False).
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/text/jinja/ast.h"

namespace heddle {

struct ChatMessage {
  std::string role, content;
  std::string reasoning = {};  // what led the model to it; templates read it as reasoning_content or thinking
};

struct ChatOptions {
  bool add_generation_prompt = true;
  // An object whose members are variables of the template: tools, documents, enable_thinking, …
  const Json* extra = nullptr;
  std::optional<std::tm> now;  // for strftime_now; else the clock's local time
  // Limit of the cost of rendering, in roughly bytes made plus nanoseconds.
  uint64_t budget = uint64_t{1} << 28;
};

// Immutable: threads may share it.
class ChatTemplate {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  // Reads chat_template.jinja (and additional_chat_templates/) of a checkpoint's folder, or `chat_template`
  // of its tokenizer_config.json, and the special tokens there. Throws Error: kIo when there is none or a
  // file is malformed; kUnsupported or kInvalidArgument with the line of a template that is not understood.
  // `file`: a template to use instead of the folder's.
  static ChatTemplate load(const std::string& folder, const std::string& file = "");
  static bool exists(const std::string& folder);
  // Throws Error(kIo) for a folder without one. `what` gives it one: "--template FILE".
  [[noreturn]] static void fail_without(const std::string& folder, std::string_view what);

  // Errors name it `name`. `special_tokens` are variables such as bos_token.
  static ChatTemplate parse(std::string_view text, const std::string& name,
                            const Variables& special_tokens = {});

  // Keeps the special tokens, and takes another template.
  ChatTemplate with_text(std::string_view text, const std::string& name) const {
    return parse(text, name, special_tokens_);
  }

  // The text of the template that is used with or without tools; empty if there is none.
  std::string_view text(bool with_tools = false) const;

  // Notes for people, on the members of `variables` that the template names nowhere.
  std::vector<std::string> unread(const Json& variables) const;

  std::string render(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;
  // `messages`: an array of objects, as in transformers. If a model has several templates and `extra` has
  // tools, the one called tool_use is preferred. Throws Error(kInvalidArgument) when the template refuses the
  // messages.
  std::string render_json(const Json& messages, const ChatOptions& options = {}) const;

 private:
  struct Entry {
    std::string name, file, text;
    jinja::Body body;
  };
  void add(const std::string& name, const std::string& file, std::string_view text);
  const Entry& choose(bool with_tools) const;

  std::vector<Entry> entries_;
  Variables special_tokens_;
};

}  // namespace heddle
