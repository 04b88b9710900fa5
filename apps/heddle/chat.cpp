// heddle chat: a conversation with a model.
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "apps/heddle/support/answer_flags.h"
#include "apps/heddle/support/chat_input.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/input.h"
#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/output.h"
#include "apps/heddle/support/rate.h"
#include "apps/heddle/support/thoughts.h"
#include "heddle/base/error.h"
#include "heddle/model/hf/other_formats.h"
#include "heddle/session/conversation.h"

namespace heddle {
namespace {

struct ChatFlags : AnswerFlags {
  std::string when_full = "stop";
};

constexpr const char* kHelp =
    "/reset        forget the conversation\n"
    "/system TEXT  set the system text; without TEXT show it\n"
    "/history      show the conversation\n"
    "/stats        show the figures of the last turn, and how much context is left\n"
    "/save FILE    write the conversation as JSON\n"
    "/load FILE    continue a saved conversation\n"
    "/quit         leave; so does Ctrl-D\n"
    "A line that ends with \\ continues on the next; \"\"\" begins and ends a message of several lines.\n"
    "Ctrl-C stops an answer; at the prompt, twice, it leaves.\n";

class Chat {
 public:
  // `read`: the files that /save must not overwrite.
  Chat(Conversation& conversation, const SamplingParams& sampling, std::vector<std::string> read)
      : conversation_(conversation), slow_choice_(slow_choice(sampling)), read_(std::move(read)) {}

  // Returns the reason if no message was answered: each was refused or, from a pipe, no command did its work either.
  const char* run() {
    talk();
    if (turns_ > 0) return nullptr;
    if (refused_ > 0) return "the notes above say why";
    if (done_ > 0 || input_.is_terminal()) return nullptr;
    return failed_ > 0 ? "the notes above say why" : "stdin had none";
  }

 private:
  void talk() {
    std::string line;
    for (bool asked = false;;) {
      const ChatInput::Kind kind = input_.read(line);
      if (kind == ChatInput::Kind::kEnd) return;
      if (kind == ChatInput::Kind::kInterrupted) {
        if (asked) return;
        asked = true;
        forget_interrupt();
        note("(Ctrl-C once more or Ctrl-D leaves; /help says what else there is)");
        continue;
      }
      asked = false;
      try {
        if (!handle(line)) return;
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kDevice || error.code() == ErrorCode::kInternal) throw;
        ++failed_;
        note(error.what());
      }
    }
  }

  static void note(const std::string& text) {
    flush_output();
    std::fprintf(stderr, "%s\n", text.c_str());
  }

  // Returns false when the person leaves.
  bool handle(const std::string& line) {
    if (line.find_first_not_of(" \t\r\n") == std::string::npos) return true;
    if (line[0] != '/') return say(line), true;
    const size_t space = std::min(line.find(' '), line.size());
    const std::string command = line.substr(0, space), rest = line.substr(std::min(space + 1, line.size()));
    if (command == "/quit" || command == "/exit") return false;
    if (command == "/help")
      print(kHelp);
    else if (command == "/reset")
      conversation_.reset();
    else if (command == "/system")
      system(rest);
    else if (command == "/history")
      history();
    else if (command == "/stats")
      print(stats_text());
    else if (command == "/save" || command == "/load")
      keep(command, rest);
    else
      fail(ErrorCode::kInvalidArgument, "[chat] {} is not a command; /help lists all", command);
    ++done_;
    return true;
  }

  void say(const std::string& message) {
    require_utf8(message, "message");
    thoughts_ = {};
    const auto show = [this](const std::string& text) {
      thoughts_.end();
      print(text);
      flush_output();
    };
    ++refused_;
    stats_ = conversation_.say(message, show, interrupted,
                               [this](const std::string& text) { thoughts_.show(text); });
    --refused_;
    ++turns_;
    thoughts_.end();
    print("\n");
    if (interrupted()) forget_interrupt();
    if (stats_.dropped > 0)
      note(fmt::format("(the context was full: the {} oldest messages were dropped)", stats_.dropped));
    if (stats_.reason == "context") note("(the context is full: the answer was cut)");
    if (stats_.reason == "interrupted") note("(stopped)");
    note(fmt::format("[{} tokens{}; {} of {} positions left]", stats_.answer,
                     rate_text(double(stats_.answer), stats_.answer_seconds), stats_.left, stats_.context));
  }

  void system(const std::string& text) {
    require_utf8(text, "message");
    if (text.empty())
      print(conversation_.system().empty() ? "(none)\n" : conversation_.system() + "\n");
    else
      conversation_.set_system(text);
  }

  void history() const {
    if (!conversation_.system().empty()) print(fmt::format("system: {}\n", conversation_.system()));
    for (const ChatMessage& message : conversation_.messages()) {
      if (!message.reasoning.empty()) print(fmt::format("{} thought: {}\n", message.role, message.reasoning));
      print(fmt::format("{}: {}\n", message.role, message.content));
    }
  }

  std::string stats_text() const {
    if (turns_ == 0) return "no turn yet\n";
    const size_t fresh = stats_.prompt - stats_.kept;
    return fmt::format(
        "turn      {}, ended by {}\n"
        "prompt    {} tokens: {} were in the KV cache, {} were processed in {:.3f} s{}\n"
        "answer    {} tokens in {:.3f} s{}{}\n"
        "context   {} of {} positions used, {} left\n",
        turns_, stats_.reason, stats_.prompt, stats_.kept, fresh, stats_.prompt_seconds,
        rate_text(double(fresh), stats_.prompt_seconds), stats_.answer, stats_.answer_seconds,
        rate_text(double(stats_.answer), stats_.answer_seconds), slow_choice_, stats_.context - stats_.left,
        stats_.context, stats_.left);
  }

  void keep(const std::string& command, const std::string& file) {
    require(!file.empty(), "[chat] {} needs the name of a file", command);
    if (command == "/save") {
      require_none_of(file, read_, "chat");
      conversation_.save(file);
    } else {
      conversation_.load(file);
    }
    note(fmt::format("({} messages)", conversation_.messages().size()));
  }

  Conversation& conversation_;
  ChatInput input_;
  std::string slow_choice_;
  std::vector<std::string> read_;
  Thoughts thoughts_;
  TurnStats stats_;
  size_t turns_ = 0, refused_ = 0;  // messages that were answered, and that were not
  size_t done_ = 0, failed_ = 0;    // commands that did their work; commands and messages that failed
};

void run(const ChatFlags& flags, const Command& command) {
  require(flags.when_full == "stop" || flags.when_full == "slide",
          "[chat] --context-full is '{}'; must be stop or slide", flags.when_full);
  require_utf8(flags.system, "--system");
  require_model_folder(flags.engine.model);
  const ChatTemplate form = flags.chat_template();
  Json variables = flags.template_variables(form);
  const Tokenizer tokenizer = Tokenizer::load(flags.engine.model);
  AnswerSettings settings = flags.settings(command, tokenizer);
  const auto engine = load_engine(flags.engine, flags.engine.options());
  flags.require_known(settings, engine->info().vocab);
  AnswerFlags::draw_seed(command, settings);
  Conversation conversation(*engine, tokenizer, form, settings, flags.when_full == "slide");
  conversation.set_system(flags.system);
  conversation.set_variables(std::move(variables));
  keep_running_on_interrupt();
  const char* const unanswered =
      Chat(conversation, settings.sampling, {flags.engine.model, flags.form, flags.engine.program}).run();
  if (interrupted()) forget_interrupt();  // leaving at the prompt is not a failure
  if (unanswered) fail(ErrorCode::kIo, "[chat] no message was answered: {}", unanswered);
}

}  // namespace

void add_chat(CLI::App& app) {
  auto flags = std::make_shared<ChatFlags>();
  Command command(app, "chat", "Talk with a model");
  flags->asked.max_tokens = 1024;
  command.argument("--system", &flags->system, "system text: the model reads it first");
  command.argument("--context-full", &flags->when_full,
                   "a turn that does not fit: stop refuses it, slide drops the oldest messages",
                   {.choices = "stop, slide"});
  flags->add_to(command, {"logprobs"});
  flags->engine.add_to(command);
  flags->engine.add_artefact_to(command);
  flags->add_template_to(command, "The conversation");
  command.footer(
      "Answers go to stdout, all else (thoughts too) to stderr; without a terminal, a line is a message. "
      "Commands:\n" +
      std::string(kHelp) +
      "Examples:\n"
      "  heddle chat models/storyteller      (the shipped model: stories, and sums such as 27 + 45)\n"
      "  heddle chat ~/Llama-3.2-1B-Instruct --temperature 0.7 --context-full slide");
  command.action([flags, command] { run(*flags, command); });
}

}  // namespace heddle
