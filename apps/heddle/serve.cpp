// heddle serve: answers requests over HTTP, as OpenAI's API has them.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "apps/heddle/support/answer_flags.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/interrupt.h"
#include "heddle/base/error.h"
#include "heddle/model/hf/other_formats.h"
#include "heddle/serve/api.h"
#include "heddle/serve/server.h"

namespace heddle {
namespace {

struct ServeFlags : AnswerFlags {
  std::string host = "127.0.0.1", name, key_file, log;
  i32 port = 8000, sequences = 16, waiting = 256, connections = 1024, drain = 30, step_limit = 120;
};

LogForm log_form(const std::string& name) {
  if (name.empty()) return ::isatty(STDERR_FILENO) ? LogForm::kText : LogForm::kJson;
  require(name == "text" || name == "json" || name == "none",
          "[serve] --log is '{}'; must be text, json or none", name);
  return name == "text" ? LogForm::kText : name == "json" ? LogForm::kJson : LogForm::kNone;
}

void check(const ServeFlags& flags) {
  const auto within = [](const char* name, i32 value, i32 least, i32 most) {
    require(value >= least && value <= most, "[serve] {} is {}; must be {} to {}", name, value, least, most);
  };
  within("--port", flags.port, 0, 65535);
  within("--sequences", flags.sequences, 1, 512);
  within("--max-waiting", flags.waiting, 1, 1'000'000);
  within("--max-connections", flags.connections, 1, 1'000'000);
  within("--drain", flags.drain, 0, 86'400);
  within("--step-limit", flags.step_limit, 1, 86'400);
}

// A connection takes a file descriptor; the usual limit is 1,024.
void allow_files(i32 connections) {
  rlimit limit{};
  const rlim_t wanted = rlim_t(connections) + 128;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<std::string> names_of(const ServeFlags& flags) {
  const std::string& folder = flags.engine.model;
  std::filesystem::path path(folder);
  if (!path.has_filename()) path = path.parent_path();
  const std::string own =
      path.stem() == path.filename() || !path.has_extension() || path.extension() != ".gguf"
          ? path.filename().string()
          : path.stem().string();
  if (!flags.name.empty()) return {flags.name};
  return {own, folder};
}

ServedModel served_model(const ServeFlags& flags, const Command& command, const Engine& engine,
                         Tokenizer tokenizer) {
  AnswerSettings settings = flags.settings(command, tokenizer);
  flags.require_known(settings, engine.info().vocab);
  std::optional<ChatTemplate> chat;
  Json variables = Json::object();
  if (!flags.form.empty() || ChatTemplate::exists(flags.engine.model)) {
    chat = flags.chat_template();
    variables = flags.template_variables(*chat);
  }
  return {.names = names_of(flags),
          .tokenizer = std::move(tokenizer),
          .chat = std::move(chat),
          .variables = std::move(variables),
          .settings = std::move(settings),
          .vocab = engine.info().vocab,
          .context = engine.max_context(),
          .created = seconds_since_1970()};
}

void run(const ServeFlags& flags, const Command& command) {
  check(flags);
  require_model_folder(flags.engine.model);
  allow_files(flags.connections);
  Api api({.keys = flags.key_file.empty() ? Keys() : Keys::load(flags.key_file),
           .log = log_form(flags.log),
           .max_waiting = size_t(flags.waiting),
           .step_limit = std::chrono::seconds(flags.step_limit)});
  // It listens while the model loads, so that a port that is taken is told at once, and /ready says what goes on.
  Server server({.host = flags.host, .port = flags.port, .connections = size_t(flags.connections)}, api);
  api.count_connections([&server] { return server.connections(); });
  Tokenizer tokenizer = Tokenizer::load(flags.engine.model);
  EngineOptions options = flags.engine.options();
  options.max_sequences = flags.sequences;
  const auto engine = load_engine(flags.engine, options);
  ServedModel model = served_model(flags, command, *engine, std::move(tokenizer));
  engine->program(1, 1);  // compiled before the first request
  const std::string name = model.names[0];
  api.open(std::move(model), *engine);
  std::promise<void> asked;
  server.every(std::chrono::milliseconds(100), [&api] { api.look(); });  // well within the least --step-limit
  server.on_signal([&asked, was_asked = false]() mutable {
    if (std::exchange(was_asked, true)) std::_Exit(kInterruptedCode);
    asked.set_value();
  });
  std::fprintf(stderr, "heddle serves %s at http://%s:%d (Ctrl-C ends it)\n", name.c_str(),
               flags.host.c_str(), server.port());
  asked.get_future().wait();
  std::fprintf(stderr,
               "heddle: no new requests; those that run may end within %d s (Ctrl-C once more ends them)\n",
               flags.drain);
  api.refuse_new();
  server.refuse_new();
  api.stop(std::chrono::seconds(flags.drain));
  // The last bytes of responses are on their way.
  for (int i = 0; i < 100 && server.connections() > 0; ++i) ::usleep(20'000);
}

}  // namespace

void add_serve(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  Command command(app, "serve", "Answer requests over HTTP, as OpenAI's API has them");
  command.argument("--host", &flags->host, "address to listen at; 0.0.0.0 lets other machines in");
  command.argument("--port", &flags->port, "port to listen at; 0: any free one");
  command.argument("--name", &flags->name, "the model's name in requests; default: its folder's");
  command.argument("--sequences", &flags->sequences, "how many answers are computed at once");
  command.argument("--api-key-file", &flags->key_file,
                   "file with a key a line; a request must have one of them (Authorization: Bearer KEY)",
                   {.names = Names::kFile});
  command.argument(
      "--log", &flags->log,
      "a line for each request on stderr, without prompts; default: text on a terminal, else json",
      {.choices = "text, json, none"});
  constexpr const char* kLimits = "Limits";
  command.argument("--max-waiting", &flags->waiting,
                   "answers that may wait; more are refused with status 429", {.group = kLimits});
  command.argument("--max-connections", &flags->connections, "open connections; more are refused",
                   {.group = kLimits});
  command.argument("--drain", &flags->drain, "seconds that answers may take to end after SIGTERM or Ctrl-C",
                   {.group = kLimits});
  command.argument("--step-limit", &flags->step_limit,
                   "seconds without the end of a step after which /health says 503", {.group = kLimits});
  flags->add_to(command, {"logprobs", "seed", "max_tokens", "stop"});
  flags->engine.add_to(command);
  flags->engine.add_artefact_to(command);
  flags->add_template_to(command, "The conversation");
  command.footer(
      "docs/serving.md says what the endpoints take. Settings above hold where a request does not set them.\n"
      "Examples:\n"
      "  heddle serve models/storyteller\n"
      "  curl http://127.0.0.1:8000/v1/completions -d '{\"prompt\": \"Once upon a time\", \"max_tokens\": "
      "40}'\n"
      "  heddle serve ~/Llama-3.1-8B-Instruct --host 0.0.0.0 --api-key-file keys.txt --sequences 32");
  command.action([flags, command] { run(*flags, command); });
}

}  // namespace heddle
