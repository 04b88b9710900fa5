// heddle generate: continues a prompt and streams the text.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "apps/heddle/support/answer.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/generate_batch.h"
#include "apps/heddle/support/generate_flags.h"
#include "apps/heddle/support/input.h"
#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/text/generation_config.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Times {
  double prompt = 0, tokens = 0;  // seconds
};

// Streams the answer as it is made.
Times stream(const GenerateFlags& flags, Engine& engine, const std::shared_ptr<Answer>& answer) {
  if (!flags.json)
    answer->on_text = [](const std::string& text) {
      print(text);
      flush_output();
    };
  Batcher batcher(engine);
  batcher.add(answer);
  const size_t size = answer->prompt().size();
  const bool show = ::isatty(STDERR_FILENO) != 0 && size > 512;
  const auto goes_on = [&] { return !batcher.idle() && !interrupted(); };
  Times times;
  Clock::time_point start = Clock::now();
  while (goes_on() && batcher.stats().new_tokens == 0) {
    batcher.step();
    if (show)
      std::fprintf(stderr, "\rreading the prompt: %zu of %zu tokens", size_t(batcher.stats().prompt_tokens),
                   size);
  }
  if (show) std::fprintf(stderr, "\r\033[K");
  times.prompt = seconds_since(start);
  start = Clock::now();
  while (goes_on()) batcher.step();
  if (!batcher.idle()) answer->end(false);
  times.tokens = seconds_since(start);
  return times;
}

// The prompt's tokens; flags.prompt becomes its text: all of stdin without the line end that closes it, as the text
// goes on where the prompt stops.
std::vector<i32> read_prompt_of(GenerateFlags& flags, const Tokenizer& tokenizer) {
  const bool from_stdin = flags.prompt == "-";
  if (from_stdin) flags.prompt = read_stdin();
  if (from_stdin && flags.prompt.ends_with('\n')) flags.prompt.pop_back();
  require_utf8(flags.prompt, "prompt");
  std::vector<i32> prompt = tokenizer.encode(flags.prompt, true);
  require(!prompt.empty(), "[generate] the prompt has no tokens; give it some text with --prompt");
  return prompt;
}

void require_fit(const std::vector<i32>& prompt, const Engine& engine, const std::string& model) {
  require(i32(prompt.size()) < engine.max_context(),
          "[generate] the prompt has {} tokens; the context holds {} ({})", prompt.size(),
          engine.max_context(), "--max-context sets it, up to what the model allows");
  for (i32 token : prompt)
    if (token >= engine.info().vocab)
      fail(ErrorCode::kIo,
           "[{}/tokenizer.json] makes token {}; the model knows 0 to {}: it is another model's", model, token,
           engine.info().vocab - 1);
}

GenerationConfig defaults_of(const std::string& model) {
  const std::string path = model + "/generation_config.json";
  return std::filesystem::exists(path) ? GenerationConfig::load(path) : GenerationConfig{};
}

// "top_p" -> "top-p"
std::string flag_name(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

void report(const GenerateFlags& flags, const Answer& answer, const Times& times) {
  const double tokens = double(answer.tokens().size());
  if (flags.json) {
    const nlohmann::json out = {
        {"prompt_tokens", answer.prompt()}, {"tokens", answer.tokens()},      {"text", answer.text()},
        {"finish_reason", answer.reason()}, {"prompt_seconds", times.prompt}, {"seconds", times.tokens}};
    print(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return;
  }
  print("\n");
  flush_output();
  const double size = double(answer.prompt().size());
  std::fprintf(stderr, "[%.0f prompt tokens in %.3f s, %.1f/s; %.0f new tokens, %.1f/s; ended by %s]\n", size,
               times.prompt, size / times.prompt, tokens, (tokens > 1 ? tokens - 1 : tokens) / times.tokens,
               answer.reason().c_str());
}

// What the flags say, else the model's generation_config.json.
AnswerSettings settings_of(const GenerateFlags& flags, const Command& command) {
  GenerationConfig config = defaults_of(flags.engine.model);
  SamplingParams::visit(flags.sampling, [&](const char* name, const auto& value, const char*) {
    SamplingParams::visit(config.sampling, [&](const char* other, auto& field, const char*) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::decay_t<decltype(field)>>)
        if (std::string_view(name) == other && command.given("--" + flag_name(name))) field = value;
    });
  });
  config.sampling.validate();
  require(flags.max_tokens >= 1, "[generate] --max-tokens is {}; must be positive", flags.max_tokens);
  AnswerSettings settings{.sampling = config.sampling, .max_tokens = flags.max_tokens, .stops = flags.stops};
  settings.stops.insert(settings.stops.end(), config.stop_strings.begin(), config.stop_strings.end());
  StopStrings check(settings.stops);
  if (!flags.ignore_eos) settings.eos = config.eos_token_ids;
  return settings;
}

void run(GenerateFlags& flags, const Command& command) {
  require(flags.prompts.empty() == flags.out.empty(),
          "[generate] --prompts FILE and --out FILE belong together; {} is missing",
          flags.out.empty() ? "--out" : "--prompts");
  require(
      flags.prompts.empty() || !(command.given("--prompt") || flags.json),
      "[generate] --prompts takes its prompts from a file and writes JSON to --out; leave out --prompt and "
      "--json");
  require_model_folder(flags.engine.model);
  const AnswerSettings settings = settings_of(flags, command);
  const Tokenizer tokenizer = Tokenizer::load(flags.engine.model + "/tokenizer.json");
  if (!flags.prompts.empty()) return generate_batch(flags, settings, tokenizer);
  std::vector<i32> prompt = read_prompt_of(flags, tokenizer);
  auto engine = load_engine(flags.engine, flags.engine.options());
  require_fit(prompt, *engine, flags.engine.model);
  if (flags.echo && !flags.json) print(flags.prompt);
  const auto answer = std::make_shared<Answer>(settings, std::move(prompt), tokenizer);
  const Times times = stream(flags, *engine, answer);
  report(flags, *answer, times);
}

}  // namespace

void add_generate(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  Command command(app, "generate", "Continue a prompt and stream the text");
  flags->engine.add_to(command);
  command.argument("--prompt", &flags->prompt,
                   "the text to go on with; - reads it from stdin; without it the model begins by itself");
  command.argument(
      "--prompts", &flags->prompts,
      "answer a file of prompts instead, many at once: a JSON object a line, with \"prompt\" or "
      "\"tokens\", and if wanted \"id\", \"max_tokens\", \"stop\", \"temperature\" and the like");
  command.argument(
      "--out", &flags->out,
      "file for the results of --prompts, one JSON object a line; what is in it is not done again");
  command.argument("--sequences", &flags->sequences, "how many prompts of a file are answered at once");
  command.argument("--max-tokens", &flags->max_tokens, "new tokens at most");
  SamplingParams::visit(flags->sampling, [&](const char* name, auto& field, const char* help) {
    command.argument("--" + flag_name(name), &field,
                     std::string(help) + "; default: generation_config.json's", {.shows_default = false});
  });
  command.argument("--stop", &flags->stops, "end before this text; may be given several times");
  command.argument("--ignore-eos", &flags->ignore_eos, "go on past the end-of-text token");
  flags->echo = ::isatty(STDOUT_FILENO) != 0;
  command.argument("--echo,!--no-echo", &flags->echo,
                   "print the prompt before its continuation; default: on a terminal");
  command.argument("--json", &flags->json,
                   "print one JSON object with tokens, text and times instead of text");
  command.footer(
      "Text goes to stdout as it is made; Ctrl-C ends it after the token at hand.\n"
      "Examples:\n"
      "  heddle generate models/storyteller --prompt \"Once upon a time\"\n"
      "  heddle generate models/storyteller --prompt \"17 + 25 =\" --temperature 0\n"
      "  heddle generate models/storyteller --temperature 0.8 --top-p 0.95 --seed 7\n"
      "  heddle generate MODEL --prompts prompts.jsonl --out results.jsonl\n"
      "  cat notes.txt | heddle generate MODEL --prompt - --max-tokens 64 --json");
  command.action([flags, command] { run(*flags, command); });
}

}  // namespace heddle
