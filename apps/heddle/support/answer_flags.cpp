#include "apps/heddle/support/answer_flags.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <type_traits>

#include "apps/heddle/support/input.h"
#include "heddle/base/error.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

constexpr const char* kVariables = "--chat-template-kwargs";
constexpr const char *kLogitBias = "--logit-bias", *kSequenceBias = "--sequence-bias";
constexpr const char* kFormat = "--response-format";

// "12,13=-2.5", by a flag.
SequenceBias parse_bias(const std::string& text, const char* flag) {
  const size_t middle = text.find('=');
  require(middle != std::string::npos,
          "[{}] '{}' has no =; token ids and a number are expected, such as 12,13=-2.5", flag, text);
  SequenceBias bias{.tokens = parse_tokens(text.substr(0, middle), flag)};
  const std::string number = text.substr(middle + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bias.bias);
  require(error == std::errc() && end == number.data() + number.size(),
          "[{}] '{}' is not a number; must be like 12,13=-2.5", flag, number);
  return bias;
}

// True for settings whose defaults come from the model's files.
bool is_sampling(std::string_view name) {
  bool found = false;
  const SamplingParams any;
  SamplingParams::visit(
      any, [&](const char* one, const auto&, const SettingHelp&) { found = found || name == one; });
  return found;
}

std::string default_of(std::string_view name) {
  if (name == "seed") return "; default: a random one, which is printed";
  return is_sampling(name) ? "; default: the model's" : "";
}

}  // namespace

std::string slow_choice(const SamplingParams& sampling) {
  const std::string why = sampling.needs_host();
  return why.empty() ? "" : "; tokens are chosen on the CPU, for " + why;
}

void say_seed(u64 seed) {
  std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(seed));
}

void AnswerFlags::add_to(Command& command, const std::set<std::string>& left_out) {
  AnswerSettings::visit(asked, [&](const std::string& name, auto& field, const SettingHelp& help) {
    using Type = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_constructible_v<FlagValue, Type*>) {
      if (left_out.contains(name)) return;
      names_.insert(name);
      const bool repeats = std::is_same_v<Type, std::vector<std::string>>;
      command.argument(flag_of(name), &field,
                       help.with_range() + default_of(name) + (repeats ? "; may be given several times" : ""),
                       {.shows_default = !is_sampling(name), .group = help.group});
    }
  });
  command.argument(
      kLogitBias, &logit_biases_,
      "IDS=NUMBER: added to the logits of these tokens, -100 to 100; -100 bans them; may be given several "
      "times",
      {.group = kChoiceGroup});
  command.argument(kSequenceBias, &biases_,
                   "IDS=NUMBER: added to the score of the last of these tokens after the others, such as "
                   "12,13=-2.5; may be given several times",
                   {.group = kChoiceGroup});
  command.argument("--bad-word", &bad_words_,
                   "never generate this text, as it is or after a space; may be given several times",
                   {.group = kChoiceGroup});
  command.argument("--eos-token-id", &eos_,
                   "end at this token, instead of the model's; may be given several times",
                   {.group = kEndGroup});
  command.argument(kFormat, &format_,
                   "JSON object: the form of the answer, such as {\"type\": \"json_object\"}, or json_schema "
                   "as OpenAI has it",
                   {.group = kEndGroup});
  command.argument("--ignore-generation", &ignored_,
                   "go on without this setting of the model's generation_config.json or config.json, such as "
                   "num_beams; may be given several times",
                   {.group = kChoiceGroup});
  command.argument("--ignore-eos", &ignore_eos_, "go on past the end-of-text token", {.group = kEndGroup});
}

void AnswerFlags::add_template_to(Command& command, const char* group) {
  command.argument("--template", &form, "file with a chat template to use instead of the model's",
                   {.group = group, .names = Names::kFile});
  command.argument(kVariables, &variables,
                   "JSON object with variables of the chat template, such as {\"enable_thinking\": false}",
                   {.group = group});
}

AnswerSettings AnswerFlags::settings(const Command& command, const Tokenizer& tokenizer) const {
  AnswerSettings settings = model_settings(engine.model, {ignored_.begin(), ignored_.end()});
  take_given(settings, asked, [&](std::string_view name) {
    return names_.contains(std::string(name)) && (!is_sampling(name) || command.given(flag_of(name)));
  });
  for (const std::string& text : asked.stop) require_utf8(text, "--stop");
  for (const std::string& text : logit_biases_)
    for (const SequenceBias bias = parse_bias(text, kLogitBias); const i32 token : bias.tokens)
      settings.sampling.logit_bias.of_token[token] = bias.bias;
  for (const std::string& bias : biases_)
    settings.sampling.sequence_bias.push_back(parse_bias(bias, kSequenceBias));
  for (const std::string& word : bad_words_) {
    require_utf8(word, "--bad-word");
    require(!word.empty(), "[--bad-word] one is empty; give it a text");
    forbid(settings, word, tokenizer);
  }
  if (!format_.empty()) {
    const JsonDocument document(format_, kFormat);
    settings.response_format = read_response_format(document.root());
  }
  if (!eos_.empty() || ignore_eos_) settings.eos_token_id.clear();
  for (const std::string& id : eos_) {
    const std::vector<i32> tokens = parse_tokens(id, "--eos-token-id");
    if (!ignore_eos_) settings.eos_token_id.insert(settings.eos_token_id.end(), tokens.begin(), tokens.end());
  }
  settings.validate();
  return settings;
}

void AnswerFlags::require_known(AnswerSettings& settings, i32 vocab) const {
  if (eos_.empty()) drop_impossible_ends(settings, vocab);
  require_known_tokens(settings, vocab);
}

void AnswerFlags::draw_seed(const Command& command, AnswerSettings& settings) {
  if (settings.sampling.greedy() || !draws_seed(command)) return;
  settings.sampling.seed = random_seed();
  say_seed(settings.sampling.seed);
}

ChatTemplate AnswerFlags::chat_template() const {
  if (form.empty() && !ChatTemplate::exists(engine.model))
    ChatTemplate::fail_without(engine.model, "--template FILE");
  return ChatTemplate::load(engine.model, form);
}

Json AnswerFlags::template_variables(const ChatTemplate& chat) const {
  if (variables.empty()) return Json::object();
  Json given;
  try {
    given = parse_json(variables, kVariables);
  } catch (const Error& error) {
    fail(ErrorCode::kInvalidArgument, "{}; a JSON object is expected, such as {}", error.what(),
         R"({"enable_thinking": false})");
  }
  require(given.is_object(), "[{}] {} is no JSON object; such as {} is expected", kVariables, brief(given),
          R"({"enable_thinking": false})");
  require(!given.find("messages"), "[{}] has messages, which are the conversation's; leave them out",
          kVariables);
  for (const std::string& note : chat.unread(given))
    std::fprintf(stderr, "[%s] %s\n", kVariables, note.c_str());
  return given;
}

}  // namespace heddle
