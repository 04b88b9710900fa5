#include "heddle/session/settings.h"

#include <cmath>
#include <cstdlib>
#include <random>
#include <type_traits>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/text/generation_config.h"
#include "heddle/text/stop.h"
#include "heddle/text/token_lists.h"

namespace heddle {
namespace {

void read_texts(std::vector<std::string>& texts, const JsonView& value) {
  const auto add = [&](const JsonView& text) {
    if (text.as_string().empty()) text.fail(ErrorCode::kIo, "a text is expected: an empty one ends at once");
    texts.push_back(text.as_string());
  };
  if (value.is_array())
    value.for_each_item(add);
  else
    add(value);
}

void read(float& field, const JsonView& value) {
  field = float(value.as_number());
}
void read(i32& field, const JsonView& value) {
  field = i32(value.as_int(0, INT32_MAX));
}
void read(uint64_t& field, const JsonView& value) {
  field = uint64_t(value.as_int(0, INT64_MAX));
}
void read(std::vector<std::string>& field, const JsonView& value) {
  read_texts(field, value);
}
void read(std::vector<i32>& field, const JsonView& value) {
  field = value.is_array() ? read_token_list(value) : std::vector{i32(value.as_int(0, INT32_MAX))};
}
void read(std::vector<std::vector<i32>>& field, const JsonView& value) {
  field = read_token_lists(value);
}
void read(TokenBias& field, const JsonView& value) {
  field = read_token_bias(value);
}
void read(std::vector<SequenceBias>& field, const JsonView& value) {
  field = read_sequence_bias(value);
}
void read(ResponseFormat& field, const JsonView& value) {
  field = read_response_format(value);
}

// The fewest digits that give the same float. JSON has no infinity.
Json written(float value) {
  const std::string digits = fmt::format("{}", value);
  return std::isfinite(value) ? Json(std::strtod(digits.c_str(), nullptr)) : Json(digits);
}
Json written(const TokenBias& value) {
  Json made = Json::object();
  for (const auto& [token, bias] : value.of_token) made[std::to_string(token)] = written(bias);
  return made;
}
Json written(const SequenceBias& value) {
  return Json::array({value.tokens, written(value.bias)});
}
Json written(const ResponseFormat& value) {
  return value.grammar ? parse_json(value.written, "response_format") : Json();
}
Json written(const auto& value) {
  return Json(value);
}
Json written(const std::vector<SequenceBias>& values) {
  Json list = Json::array();
  for (const SequenceBias& value : values) list.push_back(written(value));
  return list;
}

template <class T>
void take(T& field, const T& asked) {
  if constexpr (std::is_same_v<T, std::vector<std::string>>)
    field.insert(field.end(), asked.begin(), asked.end());
  else
    field = asked;
}

}  // namespace

void AnswerSettings::validate() const {
  sampling.validate();
  require(max_tokens >= 1, "[answer] max_tokens is {}; must be positive", max_tokens);
  require(logprobs >= -1, "[answer] logprobs is {}; must be 0 or more, or -1 for none", logprobs);
  const StopStrings checked(stop);
}

AnswerSettings model_settings(const std::string& folder, const std::set<std::string, std::less<>>& ignored) {
  return settings_of(GenerationConfig::load(folder, ignored));
}

AnswerSettings settings_of(const GenerationConfig& config) {
  return {.sampling = config.sampling, .stop = config.stop_strings, .eos_token_id = config.eos_token_ids};
}

void take_given(AnswerSettings& settings, const AnswerSettings& asked,
                const std::function<bool(std::string_view name)>& given) {
  AnswerSettings::visit(asked, [&](std::string_view name, const auto& value, const SettingHelp&) {
    if (!given(name)) return;
    AnswerSettings::visit(settings, [&](std::string_view other, auto& field, const SettingHelp&) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::decay_t<decltype(field)>>)
        if (name == other) take(field, value);
    });
  });
}

bool read_setting(AnswerSettings& settings, std::string_view name, const JsonView& value) {
  if (name == "min_tokens") name = "min_new_tokens";
  bool found = false;
  AnswerSettings::visit(settings, [&](std::string_view other, auto& field, const SettingHelp&) {
    if (name != other) return;
    found = true;
    read(field, value);
  });
  return found;
}

std::string setting_names() {
  std::string names;
  const AnswerSettings any;
  AnswerSettings::visit(any, [&](const char* name, const auto&, const SettingHelp&) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  });
  return names;
}

Json json_of(const AnswerSettings& settings) {
  Json made = Json::object();
  AnswerSettings::visit(settings, [&](const char* name, const auto& field, const SettingHelp&) {
    made[name] = written(field);
  });
  return made;
}

void forbid(AnswerSettings& settings, const std::string& text, const Tokenizer& tokenizer) {
  require(!text.empty(), "[answer] a text that is never to be made is empty; give it some characters");
  for (const std::string& form : {text, " " + text})
    settings.sampling.bad_words_ids.push_back(tokenizer.encode(form, false));
}

void require_known_tokens(const AnswerSettings& settings, i32 vocab) {
  const auto check = [&](const char* what, std::span<const i32> tokens) {
    for (i32 token : tokens)
      require(token >= 0 && token < vocab, "[sampling] {} has token {}; the model knows 0 to {}", what, token,
              vocab - 1);
  };
  for (const auto& [token, bias] : settings.sampling.logit_bias.of_token)
    check("logit_bias", std::span(&token, 1));
  for (const SequenceBias& bias : settings.sampling.sequence_bias) check("sequence_bias", bias.tokens);
  for (const auto& word : settings.sampling.bad_words_ids) check("bad_words_ids", word);
  check("suppress_tokens", settings.sampling.suppress_tokens);
  check("begin_suppress_tokens", settings.sampling.begin_suppress_tokens);
  check("forced_eos_token_id", settings.sampling.forced_eos_token_id);
  if (settings.sampling.forced_bos_token_id >= 0)
    check("forced_bos_token_id", std::span(&settings.sampling.forced_bos_token_id, 1));
  check("eos_token_id", settings.eos_token_id);
}

void drop_impossible_ends(AnswerSettings& settings, i32 vocab) {
  std::erase_if(settings.eos_token_id, [&](i32 id) { return id >= vocab; });
}

u64 random_seed() {
  std::random_device source;
  return source() % 1'000'000'000u;
}

SamplingSettings program_sampling(const AnswerSettings& settings, size_t prompt) {
  const SamplingParams& s = settings.sampling;
  // The ops have no top-p of 0, which keeps one token as a top-k of 1 does.
  const bool one = s.top_p == 0;
  SamplingSettings made = {.temperature = s.temperature,
                           .top_p = one ? 1 : s.top_p,
                           .min_p = s.min_p,
                           .repetition_penalty = s.repetition_penalty,
                           .top_k = one ? 1 : s.top_k,
                           .seed = s.seed,
                           .presence_penalty = s.presence_penalty,
                           .frequency_penalty = s.frequency_penalty};
  if (!s.needs_host().empty()) return made;  // the host chooses
  const auto ban = [&](i32 token) { made.bias.emplace_back(token, -INFINITY); };
  for (const auto& [token, bias] : s.logit_bias.of_token)
    made.bias.emplace_back(token, bias > TokenBias::kBan ? bias : -INFINITY);
  for (const SequenceBias& bias : s.sequence_bias) made.bias.emplace_back(bias.tokens[0], bias.bias);
  for (const auto& word : s.bad_words_ids) ban(word[0]);
  for (const i32 token : s.suppress_tokens) ban(token);
  for (const i32 token : s.begin_suppress_tokens) made.not_before.emplace_back(token, 1);
  const i64 least = std::max<i64>(s.min_new_tokens, i64(s.min_length) - i64(prompt));
  for (const i32 token : settings.eos_token_id)
    if (least > 0) made.not_before.emplace_back(token, i32(least));
  return made;
}

std::string chooser_of(const SamplingParams& sampling) {
  const std::string names = sampling.needs_host();
  return names.empty() ? "the program" : "the host, for " + names;
}

}  // namespace heddle
