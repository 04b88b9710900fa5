// heddle generate: continues a prompt and streams the text.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "apps/heddle/support/answer_flags.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/input.h"
#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/output.h"
#include "apps/heddle/support/progress.h"
#include "apps/heddle/support/rate.h"
#include "apps/heddle/support/thoughts.h"
#include "heddle/base/error.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/other_formats.h"
#include "heddle/session/answer_json.h"
#include "heddle/session/prompt_batch.h"

namespace heddle {
namespace {

// One prompt, or a file of them.
struct GenerateFlags : AnswerFlags {
  std::string prompt, prompts, out, draft = "none";
  i32 sequences = 16, n = 1;
  bool json = false, chat = false, echo = false;

  BatchOptions batch() const { return {.draft = draft == "ngram"}; }
};

// The prompt as a message of the user, with everything that the template adds around it.
AskedPrompt turn_of(const GenerateFlags& flags, const Tokenizer& tokenizer) {
  std::vector<ChatMessage> messages;
  require_utf8(flags.system, "--system");
  if (!flags.system.empty()) messages.push_back({"system", flags.system});
  messages.push_back({"user", flags.prompt});
  const ChatTemplate chat = flags.chat_template();
  const Json variables = flags.template_variables(chat);
  return asked_turn(chat, chat.render(messages, {.extra = &variables}), tokenizer);
}

// Sets flags.prompt to its text. From stdin it takes everything except a byte-order mark and the last line end, because
// the answer continues where the prompt stops.
AskedPrompt read_prompt_of(GenerateFlags& flags, const Tokenizer& tokenizer) {
  const bool from_stdin = flags.prompt == "-";
  if (from_stdin) flags.prompt = without_mark_and_end(read_stdin());
  require_utf8(flags.prompt, "prompt");
  AskedPrompt asked =
      flags.chat ? turn_of(flags, tokenizer) : AskedPrompt{.tokens = tokenizer.encode(flags.prompt, true)};
  require(!asked.tokens.empty(), "[generate] the prompt has no tokens; give it some text with --prompt");
  return asked;
}

void require_fit(const std::vector<i32>& prompt, i32 context) {
  require(i64(prompt.size()) < context,
          "[generate] the prompt has {} tokens; the context holds {}, of which one is for an answer ({})",
          prompt.size(), context, "--max-context sets it, up to what the model allows");
}

void require_known(const std::vector<i32>& prompt, const Engine& engine, const std::string& model) {
  for (i32 token : prompt)
    if (token >= engine.info().vocab)
      fail(ErrorCode::kIo,
           "[{}/tokenizer.json] makes token {}; the model knows 0 to {}: it is another model's", model, token,
           engine.info().vocab - 1);
}

void print_json(const Answer& answer, const AnswerTimes& times, const SamplingParams& sampling) {
  const std::string chooser = chooser_of(sampling);
  Json out = json_of(answer);
  if (!sampling.greedy()) out["seed"] = sampling.seed;
  out["chosen_by"] = chooser;
  out["prompt_seconds"] = times.prompt;
  out["seconds"] = times.tokens;
  print(out.dump() + "\n");
}

std::string guesses_text(const BatchStats& stats) {
  return stats.guessed_tokens == 0
             ? ""
             : fmt::format("; {} of {} guesses were right", stats.right_guesses, stats.guessed_tokens);
}

void print_times(const std::vector<std::shared_ptr<Answer>>& answers, const AnswerTimes& times,
                 const SamplingParams& sampling) {
  size_t tokens = 0;
  for (const auto& answer : answers) tokens += answer->tokens().size();
  const size_t size = answers[0]->prompt().size();
  if (tokens == 0 && answers[0]->reason() == "interrupted") {
    std::fprintf(stderr, "[interrupted while the prompt of %zu tokens was read]\n", size);
    return;
  }
  const std::string reason = answers.size() == 1 ? "; ended by " + answers[0]->reason() : "";
  // The time of the first token is the prompt's.
  const std::string text =
      fmt::format("[{} prompt tokens in {:.3f} s{}; {} new tokens{}{}{}{}]\n", size, times.prompt,
                  rate_text(double(size), times.prompt), tokens, rate_text(double(tokens) - 1, times.tokens),
                  guesses_text(times.steps), reason, slow_choice(sampling));
  std::fputs(text.c_str(), stderr);
}

// Answers that differ in their seeds: --seed and the numbers after it.
std::vector<std::shared_ptr<Answer>> answers_of(const GenerateFlags& flags, AnswerSettings settings,
                                                const AskedPrompt& asked, const Tokenizer& tokenizer) {
  std::vector<std::shared_ptr<Answer>> answers;
  for (i32 i = 0; i < flags.n; ++i, ++settings.sampling.seed)
    answers.push_back(std::make_shared<Answer>(settings, asked.tokens, tokenizer, asked.form));
  if (flags.n == 1 && !flags.json) {
    const auto thoughts = std::make_shared<Thoughts>();
    answers[0]->on_reasoning = [thoughts](const std::string& text) { thoughts->show(text); };
    answers[0]->on_text = [thoughts](const std::string& text) {
      thoughts->end();
      print(text);
      flush_output();
    };
    answers[0]->on_end = [thoughts] { thoughts->end(); };
  }
  return answers;
}

void generate(GenerateFlags& flags, AnswerSettings settings, const Tokenizer& tokenizer) {
  const AskedPrompt asked = read_prompt_of(flags, tokenizer);
  const std::vector<i32>& prompt = asked.tokens;
  EngineOptions options = flags.engine.options();
  options.max_sequences = std::min(flags.n, flags.sequences);
  require_fit(prompt, context_of(flags.engine, options));
  auto engine = load_engine(flags.engine, options);
  require_known(prompt, *engine, flags.engine.model);
  flags.require_known(settings, engine->info().vocab);
  // Compiled before the text begins, next to which no progress is shown.
  if (get_executor(options.executor).space) engine->program(1, 1);
  if (flags.echo && !flags.json) {
    print(flags.prompt);
    flush_output();
  }
  const auto answers = answers_of(flags, settings, asked, tokenizer);
  ProgressLine progress;
  const auto times_of_run = [&] {
    try {
      const auto on_prompt = [&](size_t tokens) {
        if (tokens < prompt.size())
          progress.show_tokens("reading the prompt", tokens, prompt.size());
        else
          progress.clear();
      };
      return run_answers(*engine, answers, interrupted, on_prompt, flags.batch());
    } catch (...) {
      if (!flags.json && flags.n == 1 && !answers[0]->tokens().empty()) print("\n"), flush_output();
      throw;  // the message begins a line of its own
    }
  };
  const AnswerTimes times = times_of_run();
  SamplingParams sampling = settings.sampling;
  for (size_t i = 0; i < answers.size(); ++i, ++sampling.seed) {
    if (flags.json)
      print_json(*answers[i], times, sampling);
    else
      print(flags.n == 1 ? "\n" : fmt::format("--- {} of {}\n{}\n", i + 1, flags.n, answers[i]->text()));
  }
  flush_output();
  if (!flags.json) print_times(answers, times, sampling);
}

void print_stats(const PromptBatchStats& stats) {
  const BatchStats& steps = stats.steps;
  const std::string text = fmt::format(
      "[{} prompt tokens, {} more shared; {} new tokens{} in {} steps of up to {} sequences{}{}]\n",
      steps.prompt_tokens, steps.shared_tokens, steps.new_tokens,
      rate_text(double(steps.new_tokens), stats.seconds, " tokens/s"), steps.steps, steps.most_sequences,
      guesses_text(steps),
      stats.by_host > 0
          ? fmt::format("; tokens of {} answers were chosen on the CPU, which takes longer", stats.by_host)
          : "");
  std::fputs(text.c_str(), stderr);
}

void generate_batch(const GenerateFlags& flags, AnswerSettings settings, const Tokenizer& tokenizer,
                    bool draws_seed) {
  const auto model = open_model(flags.engine.model, flags.engine.adapter);
  flags.require_known(settings, model->info().vocab);
  PromptBatch batch({.prompts = flags.prompts,
                     .results = flags.out,
                     .model = identity_of(*model, flags.engine.model),
                     .n = flags.n,
                     .max_context = flags.engine.asked.max_context,
                     .draws_seed = draws_seed,
                     .batch = flags.batch()},
                    settings, tokenizer, model->info());
  if (batch.seed()) say_seed(*batch.seed());
  if (batch.cut() > 0)
    std::fprintf(stderr, "%s: took away %zu bytes of a last line that was cut\n", flags.out.c_str(),
                 batch.cut());
  if (batch.left() > 0) {
    EngineOptions options = flags.engine.options();
    options.max_context = batch.context();
    options.max_sequences = i32(std::min(size_t(flags.sequences), batch.left()));
    const auto engine = load_engine(flags.engine, options);
    ProgressLine progress;
    const PromptBatchStats stats = batch.run(*engine, interrupted, [&] {
      progress.show(fmt::format("{} of {} answers are done", batch.done(), batch.wanted()));
    });
    progress.clear();
    print_stats(stats);
  }
  std::fprintf(stderr, "[%zu of %zu answers are done%s]\n", batch.done(), batch.wanted(),
               batch.left() > 0 ? "; the same command goes on from here" : "");
}

void run(GenerateFlags& flags, const Command& command) {
  require(flags.prompts.empty() == flags.out.empty(),
          "[generate] --prompts FILE and --out FILE belong together; {} is missing",
          flags.out.empty() ? "--out" : "--prompts");
  require(
      flags.prompts.empty() || !(command.given("--prompt") || flags.json),
      "[generate] --prompts takes its prompts from a file and writes JSON to --out; leave out --prompt and "
      "--json");
  require(flags.chat || (flags.system.empty() && flags.form.empty() && flags.variables.empty()),
          "[generate] --system, --template and --chat-template-kwargs are for a turn of a conversation; add "
          "--chat");
  require(!flags.chat || flags.prompts.empty(),
          "[generate] --chat is for --prompt; --prompts takes texts as they are");
  require(flags.n >= 1 && flags.n <= 10000, "[generate] --n is {}; must be 1 to 10000", flags.n);
  require(flags.sequences >= 1 && flags.sequences <= 512, "[generate] --sequences is {}; must be 1 to 512",
          flags.sequences);
  require(flags.asked.logprobs < 0 || flags.json || !flags.prompts.empty(),
          "[generate] --logprobs is {} and text has no place for them; add --json", flags.asked.logprobs);
  require_model_folder(flags.engine.model);
  const Tokenizer tokenizer = Tokenizer::load(flags.engine.model);
  AnswerSettings settings = flags.settings(command, tokenizer);
  if (!flags.prompts.empty())
    return generate_batch(flags, settings, tokenizer, AnswerFlags::draws_seed(command));
  AnswerFlags::draw_seed(command, settings);
  generate(flags, settings, tokenizer);
}

}  // namespace

void add_generate(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  Command command(app, "generate", "Continue a prompt and stream the text");
  command.argument("--prompt", &flags->prompt,
                   "the text to continue; - reads it from stdin; without it the model begins by itself");
  command.argument("--chat", &flags->chat,
                   "the prompt is a message of the user: put it into the model's chat template");
  flags->add_to(command);
  command.argument("--json", &flags->json,
                   "print one JSON object with tokens, text and times instead of text");
  flags->engine.add_to(command);
  flags->engine.add_artefact_to(command);
  constexpr const char* kTurn = "With --chat";
  command.argument("--system", &flags->system, "system text, which the model reads first", {.group = kTurn});
  flags->add_template_to(command, kTurn);
  constexpr const char* kMany = "Many answers";
  command.argument(
      "--prompts", &flags->prompts,
      "answer a file of prompts instead, many at once: one JSON object per line, with \"prompt\" or "
      "\"tokens\", and optionally \"id\", \"max_tokens\", \"stop\", \"temperature\" and so on",
      {.group = kMany, .names = Names::kFile});
  command.argument(
      "--out", &flags->out,
      "file for the results of --prompts, one JSON object per line; results in it are not computed again",
      {.group = kMany, .names = Names::kNewFile});
  command.argument("--sequences", &flags->sequences, "how many answers are computed at once",
                   {.group = kMany});
  command.argument("--n", &flags->n,
                   "how many answers to a prompt; each one's seed is one higher than the last",
                   {.group = kMany});
  command.argument(
      "--draft", &flags->draft,
      "guess tokens where the text repeats itself: greedy answers go on by several tokens a step where the "
      "model agrees, and stay as they are",
      {.group = kChoiceGroup, .choices = "none, ngram"});
  command.argument("--echo,!--no-echo", &flags->echo, "print the prompt before its continuation",
                   {.group = kPrintGroup});
  command.footer(
      "Text goes to stdout as soon as it is certain. Ctrl-C ends it after the current token.\n"
      "Examples:\n"
      "  heddle generate models/storyteller --prompt \"Once upon a time\"\n"
      "  heddle generate models/storyteller --prompt \"17 + 25 =\" --temperature 0\n"
      "  heddle generate models/storyteller --temperature 0.8 --top-p 0.95 --seed 7\n"
      "  heddle generate MODEL --prompts prompts.jsonl --out results.jsonl\n"
      "  cat notes.txt | heddle generate MODEL --prompt - --max-tokens 64 --json");
  command.action([flags, command] { run(*flags, command); });
}

}  // namespace heddle
