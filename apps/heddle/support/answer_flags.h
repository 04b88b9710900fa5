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

// Returns why tokens are chosen outside of the program, which takes longer ("; tokens are chosen on the CPU,
// for typical_p"), or "" where they are not.
std::string slow_choice(const SamplingParams& sampling);

// Says a seed that was drawn on stderr: "seed 1234567".
void say_seed(u64 seed);

struct AnswerFlags {
  EngineFlags engine;
  // For a conversation: `form` is a file with its template, `variables` a JSON object for the template.
  std::string system, form, variables;

  // Adds a flag for each field of AnswerSettings that a flag can hold, except those left out, and special
  // flags for the others.
  void add_to(Command& command, const std::set<std::string>& left_out = {});
  // Adds the flags of `form` and `variables`.
  void add_template_to(Command& command, const char* group);
  // The settings of the flags; the model's generation_config.json supplies the rest. Throws Error when a
  // value is out of its range.
  AnswerSettings settings(const Command& command, const Tokenizer& tokenizer) const;
  // Throws Error when `settings` name a token that a model of `vocab` tokens lacks. The model's own ends may.
  void require_known(AnswerSettings& settings, i32 vocab) const;
  // True if no seed was given; settings() then has the default.
  static bool draws_seed(const Command& command) { return !command.given("--seed"); }
  // Puts a random seed into settings that choose at random, unless one was given, and says it on stderr.
  static void draw_seed(const Command& command, AnswerSettings& settings);
  // The template in `form`, or the model's if `form` is empty. If there is none, throws Error that says what
  // to pass.
  ChatTemplate chat_template() const;
  // The object in `variables`; a note on stderr says which of them the template does not read.
  Json template_variables(const ChatTemplate& chat) const;

  AnswerSettings asked;

 private:
  std::set<std::string> names_;  // fields that have a flag
  std::string format_;
  std::vector<std::string> bad_words_, logit_biases_, biases_, eos_, ignored_;
  bool ignore_eos_ = false;
};

}  // namespace heddle
