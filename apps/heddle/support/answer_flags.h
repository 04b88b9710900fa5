// The flags of commands that make answers: how tokens are chosen, and where a text ends.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "heddle/session/settings.h"
#include "heddle/text/chat_template.h"

namespace heddle {

struct AnswerFlags {
  EngineFlags engine;
  std::string system, form;  // for a conversation; `form` is a file with its template

  // Adds a flag for each field of AnswerSettings that a flag can hold, except those left out, and special
  // flags for the others.
  void add_to(Command& command, const std::set<std::string>& left_out = {});
  // The settings of the flags; the model's generation_config.json supplies the rest. Throws Error when a
  // value is out of its range.
  AnswerSettings settings(const Command& command, const Tokenizer& tokenizer) const;
  // The template in `form`, or the model's if `form` is empty. If there is none, throws Error that says what
  // to pass.
  ChatTemplate chat_template() const;

  AnswerSettings asked;

 private:
  std::set<std::string> names_;  // fields that have a flag
  std::vector<std::string> bad_words_, biases_, eos_, ignored_;
  bool ignore_eos_ = false;
};

}  // namespace heddle
