// Settings of an answer: how its tokens are chosen, and where it ends. Flags, JSON and keywords of other
// languages derive from AnswerSettings::visit.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json_view.h"
#include "heddle/engine/sequences.h"
#include "heddle/session/answer_format.h"
#include "heddle/text/generation_config.h"
#include "heddle/text/sampling_params.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

struct AnswerSettings {
  SamplingParams sampling;
  i32 max_tokens = 256;
  i32 logprobs = -1;
  std::vector<std::string> stop;
  std::vector<i32> eos_token_id;
  ResponseFormat response_format;

  // Calls v(name, field, help) for each field, including those of `sampling`. Fields are i32, uint64_t, float
  // and lists: std::vector<std::string>, std::vector<i32>, TokenBias, std::vector<SequenceBias>,
  // std::vector<std::vector<i32>>, ResponseFormat.
  template <class Self, class V>
  static void visit(Self& self, V&& v) {
    SamplingParams::visit(self.sampling, v);
    v("logit_bias", self.sampling.logit_bias,
      {"numbers added to the logits of tokens, -100 to 100; -100 bans a token", kChoiceGroup});
    v("sequence_bias", self.sampling.sequence_bias,
      {"numbers added to the score of the last token of a sequence when the others come before it",
       kChoiceGroup});
    v("bad_words_ids", self.sampling.bad_words_ids,
      {"sequences of tokens that are never completed", kChoiceGroup});
    v("suppress_tokens", self.sampling.suppress_tokens, {"tokens that are never chosen", kChoiceGroup});
    v("begin_suppress_tokens", self.sampling.begin_suppress_tokens,
      {"tokens that are never chosen first", kChoiceGroup});
    v("forced_eos_token_id", self.sampling.forced_eos_token_id,
      {"one of these tokens ends an answer of max_tokens", kEndGroup});
    v("max_tokens", self.max_tokens, {"most new tokens"});
    v("logprobs", self.logprobs,
      {"keep the log-probability of each token and of this many most likely ones, by the model's logits; -1 "
       "keeps none",
       kPrintGroup});
    v("stop", self.stop, {"end before this text"});
    v("eos_token_id", self.eos_token_id, {"end at one of these tokens", kEndGroup});
    v("response_format", self.response_format,
      {"JSON object, as OpenAI has it: the form of the answer, such as {\"type\": \"json_object\"}",
       kEndGroup});
  }

  // Throws Error(kInvalidArgument) that names the field, its value and its range.
  void validate() const;
};

// The settings that a model's folder has for generation (text/generation_config.h); the defaults above fill in
// what it does not say. `ignored`: names of settings to leave out. Throws Error(kIo) when they are malformed,
// Error(kUnsupported) when they ask for something that heddle does not do.
AnswerSettings model_settings(const std::string& folder,
                              const std::set<std::string, std::less<>>& ignored = {});
// Has the settings of a model without a folder.
AnswerSettings settings_of(const GenerationConfig& config);

// Takes the fields of `asked` for which given(name) is true. Stop strings are added to the existing ones;
// every other field is replaced.
void take_given(AnswerSettings& settings, const AnswerSettings& asked,
                const std::function<bool(std::string_view name)>& given);

// Reads the field `name` from JSON, as take_given() would take it. A stop may be a string or a list of them,
// and eos_token_id a number or a list; min_tokens is another name of min_new_tokens. Returns false when there is no such field. Throws Error(kIo) with the
// path to a value that does not fit its field; validate() checks the ranges.
bool read_setting(AnswerSettings& settings, std::string_view name, const JsonView& value);

std::string setting_names();  // all fields, with commas between them

// Every field as JSON, in the order of the visit, as read_setting() reads it.
Json json_of(const AnswerSettings& settings);

// Forbids this text, alone or after a space. Throws Error(kInvalidArgument) when it is empty.
void forbid(AnswerSettings& settings, const std::string& text, const Tokenizer& tokenizer);

// Throws Error(kInvalidArgument) when `settings` name a token outside the model's vocabulary.
void require_known_tokens(const AnswerSettings& settings, i32 vocab);

// Leaves out ends that a model of `vocab` tokens never writes, as its files may name some.
void drop_impossible_ends(AnswerSettings& settings, i32 vocab);

// A seed that nobody chose, short enough to be typed again.
u64 random_seed();

// The part of the settings that a program does, for an answer to a prompt of so many tokens. The host does the rest
// (SamplingParams::needs_host).
SamplingSettings program_sampling(const AnswerSettings& settings, size_t prompt);
// Names the part that chooses the tokens, for people: "the program", or "the host, for typical_p".
std::string chooser_of(const SamplingParams& sampling);

}  // namespace heddle
