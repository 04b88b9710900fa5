#include "apps/heddle/support/answer_settings.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <type_traits>

#include "apps/heddle/support/input.h"
#include "heddle/base/error.h"
#include "heddle/text/generation_config.h"

namespace heddle {
namespace {

GenerationConfig defaults_of(const std::string& model) {
  const std::string path = model + "/generation_config.json";
  return std::filesystem::exists(path) ? GenerationConfig::load(path) : GenerationConfig{};
}

// "top_p" -> "top-p"
std::string flag_name(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// "12,13=-2.5"
SequenceBias parse_bias(const std::string& text) {
  const size_t middle = text.find('=');
  require(middle != std::string::npos,
          "[--sequence-bias] '{}' has no =; token ids and a number are expected, such as 12,13=-2.5", text);
  SequenceBias bias{.tokens = parse_tokens(text.substr(0, middle), "--sequence-bias")};
  const std::string number = text.substr(middle + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bias.bias);
  require(error == std::errc() && end == number.data() + number.size(),
          "[--sequence-bias] '{}' is no number; such as 12,13=-2.5 is expected", number);
  return bias;
}

void add_bad_word(SamplingParams& sampling, const std::string& word, const Tokenizer& tokenizer) {
  require_utf8(word, "--bad-word");
  require(!word.empty(), "[--bad-word] one is empty; give it a text");
  for (const std::string& form : {word, " " + word})
    sampling.bad_words_ids.push_back(tokenizer.encode(form, false));
}

}  // namespace

void add_sampling_flags(Command& command, GenerateFlags& flags) {
  SamplingParams::visit(flags.sampling, [&](const char* name, auto& field, const char* help) {
    command.argument("--" + flag_name(name), &field,
                     std::string(help) + "; default: generation_config.json's", {.shows_default = false});
  });
  command.argument("--sequence-bias", &flags.biases,
                   "IDS=NUMBER: added to the score of the last of these tokens behind the others, such as "
                   "12,13=-2.5; may be given several times");
  command.argument(
      "--bad-word", &flags.bad_words,
      "a text whose tokens are never made, as it is and behind a space; may be given several times");
  command.argument("--stop", &flags.stops, "end before this text; may be given several times");
  command.argument("--eos-token-id", &flags.eos,
                   "end at this token, instead of the model's; may be given several times");
  command.argument("--ignore-eos", &flags.ignore_eos, "go on past the end-of-text token");
}

AnswerSettings settings_of(const GenerateFlags& flags, const Command& command, const Tokenizer& tokenizer) {
  GenerationConfig config = defaults_of(flags.engine.model);
  SamplingParams& sampling = config.sampling;
  SamplingParams::visit(flags.sampling, [&](const char* name, const auto& value, const char*) {
    SamplingParams::visit(sampling, [&](const char* other, auto& field, const char*) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::decay_t<decltype(field)>>)
        if (std::string_view(name) == other && command.given("--" + flag_name(name))) field = value;
    });
  });
  for (const std::string& bias : flags.biases) sampling.sequence_bias.push_back(parse_bias(bias));
  for (const std::string& word : flags.bad_words) add_bad_word(sampling, word, tokenizer);
  sampling.validate();
  require(flags.max_tokens >= 1, "[generate] --max-tokens is {}; must be positive", flags.max_tokens);
  require(flags.logprobs >= -1, "[generate] --logprobs is {}; must be 0 or more", flags.logprobs);
  AnswerSettings settings{.sampling = sampling,
                          .logprobs = flags.logprobs,
                          .max_tokens = flags.max_tokens,
                          .stops = flags.stops,
                          .eos = config.eos_token_ids};
  settings.stops.insert(settings.stops.end(), config.stop_strings.begin(), config.stop_strings.end());
  const StopStrings checked(settings.stops);
  if (!flags.eos.empty()) settings.eos.clear();
  for (const std::string& id : flags.eos)
    for (i32 token : parse_tokens(id, "--eos-token-id")) settings.eos.push_back(token);
  if (flags.ignore_eos) settings.eos.clear();
  return settings;
}

ChatTemplate load_chat_template(const std::string& model, const std::string& file) {
  if (file.empty() && !ChatTemplate::exists(model))
    fail(ErrorCode::kIo,
         "[{}] has no chat template: it was not made to talk; --template FILE gives it one, in Jinja", model);
  return ChatTemplate::load(model, file);
}

void require_known_tokens(const AnswerSettings& settings, i32 vocab) {
  const auto check = [&](const char* what, std::span<const i32> tokens) {
    for (i32 token : tokens)
      require(token >= 0 && token < vocab, "[sampling] {} has token {}; the model knows 0 to {}", what, token,
              vocab - 1);
  };
  for (const SequenceBias& bias : settings.sampling.sequence_bias) check("sequence_bias", bias.tokens);
  for (const auto& word : settings.sampling.bad_words_ids) check("bad_words_ids", word);
  check("eos_token_id", settings.eos);
}

}  // namespace heddle
