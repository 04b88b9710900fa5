// heddle generate: continues a prompt and streams the text.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/input.h"
#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/text/generation_config.h"
#include "heddle/text/stop.h"
#include "heddle/text/stream_decoder.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct GenerateFlags {
  EngineFlags engine;
  std::string prompt;
  i32 max_tokens = 256;
  SamplingParams sampling;
  std::vector<std::string> stops;
  bool json = false, ignore_eos = false, echo = false;
};

// What was made, for the last line and for --json.
struct Story {
  std::vector<i32> prompt, tokens;
  std::string text, reason = "length";
  double prompt_seconds = 0, token_seconds = 0;
};

class Generator {
 public:
  Generator(const GenerateFlags& flags, Engine& engine, const Tokenizer& tokenizer, std::vector<i32> eos)
      : flags_(flags),
        engine_(engine),
        decoder_(tokenizer, true),
        stops_(flags.stops),
        eos_(std::move(eos)) {}

  Story run(std::vector<i32> prompt) {
    const auto& s = flags_.sampling;
    const SequenceId sequence = engine_.open({.temperature = s.temperature,
                                              .top_p = s.top_p,
                                              .min_p = s.min_p,
                                              .repetition_penalty = s.repetition_penalty,
                                              .top_k = s.top_k,
                                              .seed = s.seed});
    story_.prompt = std::move(prompt);
    Clock::time_point start = Clock::now();
    i32 token = read_prompt(sequence);
    story_.prompt_seconds = seconds_since(start);
    start = Clock::now();
    while (take(token) && engine_.length(sequence) < engine_.max_context()) {
      const StepRequest request{sequence, std::span(&token, 1), true};
      token = engine_.step(std::span(&request, 1), {.logits = false}).sampled[0];
    }
    emit(stops_.stopped() ? "" : stops_.push(decoder_.flush()) + stops_.flush());
    story_.token_seconds = seconds_since(start);
    engine_.close(sequence);
    return std::move(story_);
  }

 private:
  // Runs the prompt in chunks; returns the first new token.
  i32 read_prompt(SequenceId sequence) {
    const bool show = ::isatty(STDERR_FILENO) != 0 && story_.prompt.size() > 512;
    std::span<const i32> left = story_.prompt;
    i32 token = -1;
    while (!left.empty()) {
      const size_t n = std::min(left.size(), size_t(engine_.max_rows()));
      const StepRequest request{sequence, left.first(n), n == left.size()};
      token = engine_.step(std::span(&request, 1), {.logits = false}).sampled[0];
      left = left.subspan(n);
      if (show) {
        std::fprintf(stderr, "\rreading the prompt: %zu of %zu tokens", story_.prompt.size() - left.size(),
                     story_.prompt.size());
        if (left.empty()) std::fprintf(stderr, "\r\033[K");
      }
      if (interrupted()) break;
    }
    return token;
  }

  // Takes a token into the text; false when the text ends.
  bool take(i32 token) {
    if (interrupted()) return end("interrupted");
    if (i32(story_.tokens.size()) >= flags_.max_tokens) return end("length");
    if (!flags_.ignore_eos && std::find(eos_.begin(), eos_.end(), token) != eos_.end()) return end("eos");
    story_.tokens.push_back(token);
    emit(stops_.push(decoder_.push(token)));
    if (stops_.stopped()) return end("stop");
    return true;
  }
  bool end(const char* reason) {
    story_.reason = reason;
    return false;
  }
  void emit(const std::string& text) {
    story_.text += text;
    if (flags_.json || text.empty()) return;
    print(text);
    flush_output();
  }

  const GenerateFlags& flags_;
  Engine& engine_;
  StreamDecoder decoder_;
  StopStrings stops_;
  std::vector<i32> eos_;
  Story story_;
};

// All of stdin without the line end that closes it: the text goes on where the prompt stops.
// The prompt's tokens; flags.prompt becomes its text.
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

void report(const GenerateFlags& flags, const Story& story) {
  const double tokens = double(story.tokens.size());
  if (flags.json) {
    const nlohmann::json out = {{"prompt_tokens", story.prompt},
                                {"tokens", story.tokens},
                                {"text", story.text},
                                {"finish_reason", story.reason},
                                {"prompt_seconds", story.prompt_seconds},
                                {"seconds", story.token_seconds}};
    print(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return;
  }
  print("\n");
  flush_output();
  std::fprintf(stderr, "[%zu prompt tokens in %.3f s, %.1f/s; %zu new tokens, %.1f/s; ended by %s]\n",
               story.prompt.size(), story.prompt_seconds, double(story.prompt.size()) / story.prompt_seconds,
               story.tokens.size(), (tokens > 1 ? tokens - 1 : tokens) / story.token_seconds,
               story.reason.c_str());
}

void run(GenerateFlags& flags, const Command& command) {
  require_model_folder(flags.engine.model);
  const GenerationConfig defaults = defaults_of(flags.engine.model);
  SamplingParams sampling = defaults.sampling;
  SamplingParams::visit(flags.sampling, [&](const char* name, auto& value, const char*) {
    SamplingParams::visit(sampling, [&](const char* other, auto& field, const char*) {
      if constexpr (std::is_same_v<decltype(value), decltype(field)>)
        if (std::string_view(name) == other && command.given("--" + flag_name(name))) field = value;
    });
  });
  sampling.validate();
  flags.sampling = sampling;
  require(flags.max_tokens >= 1, "[generate] --max-tokens is {}; must be positive", flags.max_tokens);
  const Tokenizer tokenizer = Tokenizer::load(flags.engine.model + "/tokenizer.json");
  std::vector<i32> prompt = read_prompt_of(flags, tokenizer);
  auto engine = load_engine(flags.engine, flags.engine.options());
  require_fit(prompt, *engine, flags.engine.model);
  for (const std::string& stop : defaults.stop_strings) flags.stops.push_back(stop);
  if (flags.echo && !flags.json) print(flags.prompt);
  report(flags, Generator(flags, *engine, tokenizer, defaults.eos_token_ids).run(std::move(prompt)));
}

}  // namespace

void add_generate(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  Command command(app, "generate", "Continue a prompt and stream the text");
  flags->engine.add_to(command);
  command.argument("--prompt", &flags->prompt,
                   "the text to go on with; - reads it from stdin; without it the model begins by itself");
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
      "  cat notes.txt | heddle generate MODEL --prompt - --max-tokens 64 --json");
  command.action([flags, command] { run(*flags, command); });
}

}  // namespace heddle
