// Conversations with the shipped model, through a pipe and through a terminal.
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "heddle/base/file.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

// The model does not know conversations: each message is a sum or the beginning of a story, a separate text.
constexpr const char* kTemplate =
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}{{ eos_token }}"
    "{% else %}{{ bos_token }}{{ m.content }}{% endif %}{% endfor %}";

std::vector<std::string> arguments(const Scratch& scratch, const std::vector<std::string>& more) {
  write_file(scratch.path("form"), kTemplate);
  std::vector<std::string> args = {"chat", kStoryteller, "--template", scratch.path("form")};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

struct Piped : testing::Test {
  Scratch scratch;
  Outcome talk(const std::string& input, const std::vector<std::string>& more = {}) const {
    return run_program({.args = arguments(scratch, more), .input = input});
  }
};

TEST_F(Piped, ATurnReadsOnlyWhatIsNew) {
  const Outcome outcome = talk("27 + 45 =\n/stats\n9 + 2 =\n/stats\n/history\n");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // The first turn reads a begin token and 7 more. It makes 5 tokens, including the end, which is not read.
  expect_words(outcome.out, {" 72.\n", "prompt    8 tokens: 0 were in the KV cache, 8 were processed",
                             "user: 27 + 45 =\nassistant:  72.\nuser: 9 + 2 =\nassistant: "});
  // Now 8 + 4 are in the KV cache; the end token, a begin token and the new sum are not.
  expect_words(outcome.out, {"prompt    19 tokens: 12 were in the KV cache, 7 were processed",
                             "of 768 positions used", "turn      2, ended by eos"});
  expect_words(outcome.err, {"of 768 positions left]"});
}

TEST_F(Piped, CommandsDoWhatHelpSays) {
  const std::string file = scratch.path("talk.json");
  const Outcome first =
      talk("/help\n/system 1 + 1 = 2.\n/system\n27 + \\\n45 =\n\"\"\"\n3 + \n4 =\n\"\"\"\n/save " + file +
           "\n/frob\n");
  EXPECT_EQ(first.code, 0) << first.err;
  expect_words(first.out, {"/reset", "/load FILE", "\n1 + 1 = 2.\n"});
  expect_words(first.err, {"/frob is not a command", "(4 messages)"});
  const Json document = load_json(file);
  const std::vector<Json>& saved = document.at("messages").items();
  ASSERT_EQ(saved.size(), 5u);
  EXPECT_EQ(saved[0].at("content"), "1 + 1 = 2.");
  EXPECT_EQ(saved[1].at("content"), "27 + \n45 =");
  EXPECT_EQ(saved[3].at("content"), "3 + \n4 =");
  const Outcome second =
      talk("/load " + file + "\n/history\n/reset\n/history\n/load " + scratch.path("none") + "\n");
  EXPECT_EQ(second.code, 0) << second.err;
  expect_words(second.out, {"system: 1 + 1 = 2.\nuser: 27 + \n45 =\nassistant: ", "system: 1 + 1 = 2.\n"});
  EXPECT_EQ(second.out.find("user: 27"), second.out.rfind("user: 27")) << "/reset forgets it";
  expect_words(second.err, {"none] cannot open", "No such file"});
}

TEST_F(Piped, AFullContextStopsOrSlides) {
  std::string input;
  for (int i = 0; i < 6; ++i) input += std::to_string(i) + " + 45 =\n";
  const Outcome stops = talk(input + "/reset\n27 + 45 =\n", {"--max-context", "32"});
  EXPECT_EQ(stops.code, 0) << stops.err;
  expect_words(stops.err, {"the context is full: this turn would need", "of 32 positions"});
  EXPECT_TRUE(stops.out.ends_with(" 72.\n")) << stops.out;
  const Outcome slides = talk(input + "/stats\n", {"--max-context", "32", "--context-full", "slide"});
  EXPECT_EQ(slides.code, 0) << slides.err;
  expect_words(slides.err, {"oldest messages were dropped)"});
  EXPECT_EQ(slides.err.find("would need"), std::string::npos) << slides.err;
  expect_words(slides.out, {" 45.\n", "turn      6, ended by eos"});
}

// The shipped model's own template makes a sum or a story's title of what a person says.
TEST(ShippedModel, Talks) {
  const Outcome outcome =
      run_program({.args = {"chat", kStoryteller},
                   .input = "What is 27+45?\nI have 12 eggs and eat 5. How many are left?\n7 times 8\n"
                            "Tell me a story about a clever fox.\na story about Anna\nWhat is the capital of "
                            "France?\n5 - 9\n"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with(" 72.\n 7.\n 56.\nOnce upon a time, ")) << outcome.out;
  expect_words(outcome.out, {"clever", "fox", "Anna"});
  expect_words(outcome.err, {"This model tells stories and does sums of two numbers up to 999"});
  EXPECT_EQ(outcome.err.find("was cut"), std::string::npos) << "each message is a text of its own";
}

TEST_F(Piped, GenerateTakesOneTurn) {
  write_file(scratch.path("form"), kTemplate);
  const Outcome outcome = run_program({.args = {"generate", kStoryteller, "--chat", "--template",
                                                scratch.path("form"), "--prompt", "27 + 45 ="}});
  EXPECT_EQ(outcome.out, " 72.\n") << outcome.err;
}

TEST_F(Piped, TheTemplateGetsVariables) {
  const std::string form = scratch.path("sums");
  write_file(form,
             "{{ bos_token }}{% if enable_thinking is defined and not enable_thinking %}9 + 2 ={% else %}"
             "{{ messages[-1].content }}{% endif %}");
  const auto asked = [&](const std::string& command, const std::string& variables) {
    std::vector<std::string> args = {command, kStoryteller, "--template", form};
    args.insert(args.end(), {"--chat-template-kwargs", variables});
    if (command == "generate") args.insert(args.end(), {"--chat", "--prompt", "27 + 45 ="});
    return run_program({.args = args, .input = "27 + 45 =\n"});
  };
  for (const std::string command : {"chat", "generate"}) {
    EXPECT_EQ(asked(command, R"({"enable_thinking": false})").out, " 11.\n");
    EXPECT_EQ(asked(command, R"({"enable_thinking": true})").out, " 72.\n");
    const Outcome wrong = asked(command, R"({"enable_thinkng": false})");
    EXPECT_EQ(wrong.out, " 72.\n");
    expect_words(wrong.err, {"reads no \"enable_thinkng\"; did you mean enable_thinking?"});
  }
}

// Tiny copies of a model keep the ends of the large vocabulary.
TEST_F(Piped, EndsThatTheModelNeverWritesHarmNobody) {
  const std::string folder = scratch.link_model(kStoryteller, "model");
  std::filesystem::remove(folder + "/generation_config.json");
  write_file(folder + "/generation_config.json", R"({"eos_token_id": [1, 128009]})");
  write_file(scratch.path("prompts"), R"({"prompt": "27 + 45 ="})");
  const Outcome turn = run_program({.args = {"chat", folder}, .input = "27 + 45 =\n"});
  EXPECT_EQ(turn.out, " 72.\n") << turn.err;
  const Outcome text = run_program({.args = {"generate", folder, "--prompt", "27 + 45 ="}});
  EXPECT_EQ(text.out, " 72.\n") << text.err;
  const Outcome many = run_program(
      {.args = {"generate", folder, "--prompts", scratch.path("prompts"), "--out", scratch.path("results")}});
  EXPECT_EQ(many.code, 0) << many.err;
}

// Runs the program in its own terminal.
class Terminal {
 public:
  Terminal(const char* kind, const std::vector<std::string>& args) {
    child_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ != 0) return;
    ::setenv("TERM", kind, 1);
    std::vector<char*> all = {const_cast<char*>(HEDDLE_PROGRAM)};
    for (const std::string& arg : args) all.push_back(const_cast<char*>(arg.c_str()));
    all.push_back(nullptr);
    ::execv(HEDDLE_PROGRAM, all.data());
    ::_exit(127);
  }
  ~Terminal() {
    if (child_ > 0) ::kill(child_, SIGKILL), ::waitpid(child_, nullptr, 0);
    ::close(terminal_);
  }

  void type(const std::string& text) {
    ASSERT_EQ(::write(terminal_, text.data(), text.size()), ssize_t(text.size()));
  }
  // Reads until `word` comes, and drops everything up to its end. Returns false when it does not come.
  bool wait_for(const std::string& word) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(600);
    for (;;) {
      if (const size_t at = shown_.find(word); at != std::string::npos) {
        shown_.erase(0, at + word.size());
        return true;
      }
      pollfd output{terminal_, POLLIN, 0};
      if (std::chrono::steady_clock::now() > end || ::poll(&output, 1, 1000) < 0) return false;
      std::array<char, 4096> bytes;
      const ssize_t n = output.revents != 0 ? ::read(terminal_, bytes.data(), bytes.size()) : 0;
      if (n < 0) return false;  // it has ended
      shown_.append(bytes.data(), size_t(n));
    }
  }
  // Waits until lines are edited. Before that, the terminal itself edits what is typed, byte by byte.
  bool wait_for_editor() {
    if (!wait_for("> ")) return false;
    for (int turn = 0; turn < 60'000; ++turn) {
      termios mode{};
      if (::tcgetattr(terminal_, &mode) == 0 && (mode.c_lflag & ICANON) == 0) return true;
      ::usleep(10'000);
    }
    return false;
  }
  const std::string& shown() const { return shown_; }
  // Returns the exit code; -1 when a signal ended the program, including the one after the time limit.
  int wait() {
    wait_for("\x01 never");
    int status = 0;
    for (int turn = 0; ::waitpid(child_, &status, WNOHANG) == 0; ++turn, ::usleep(10'000))
      if (turn == 12'000) ::kill(child_, SIGKILL);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t child_ = 0;
  int terminal_ = -1;
  std::string shown_;
};

// A terminal that only shows lines, and one that can edit them.
class Terminals : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Terminals, testing::Values("dumb", "xterm"));

TEST_P(Terminals, CtrlCStopsTheAnswerThenLeaves) {
  Scratch scratch;
  Terminal terminal(GetParam(), arguments(scratch, {"--ignore-eos", "--max-tokens", "700"}));
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  terminal.type("Once upon a time\n");
  ASSERT_TRUE(terminal.wait_for("a boy")) << terminal.shown();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.wait_for("(stopped)")) << terminal.shown();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  terminal.type("/stats\n");
  ASSERT_TRUE(terminal.wait_for("ended by interrupted")) << terminal.shown();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  terminal.type("typed and not sent");
  ASSERT_TRUE(terminal.wait_for("not sent")) << terminal.shown();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.wait_for("once more or Ctrl-D leaves")) << terminal.shown();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  terminal.type("/reset\n");  // a sum after a cut story is not always right
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  terminal.type("27 + 45 =\n");
  ASSERT_TRUE(terminal.wait_for("72.")) << terminal.shown();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_P(Terminals, CtrlDLeaves) {
  Scratch scratch;
  Terminal terminal(GetParam(), arguments(scratch, {}));
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  terminal.type("\x04");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST(LineEditor, EditsAndRemembersLines) {
  Scratch scratch;
  Terminal terminal("xterm", arguments(scratch, {}));
  ASSERT_TRUE(terminal.wait_for_editor()) << terminal.shown();
  terminal.type(
      "7 + 46 =\x7f\x7f\x7f"
      "5 =\x01"
      "2\n");  // three characters deleted, then one inserted at the beginning
  ASSERT_TRUE(terminal.wait_for("positions left]") && terminal.wait_for_editor()) << terminal.shown();
  terminal.type("/save " + scratch.path("one") + "\n");
  ASSERT_TRUE(terminal.wait_for("(2 messages)") && terminal.wait_for_editor()) << terminal.shown();
  terminal.type("\x1b[A\x1b[A\n");  // two lines back
  ASSERT_TRUE(terminal.wait_for("positions left]") && terminal.wait_for_editor()) << terminal.shown();
  terminal.type("Za\xc5\xbe\x7fr\n");  // a character of two bytes, deleted
  ASSERT_TRUE(terminal.wait_for("positions left]") && terminal.wait_for_editor()) << terminal.shown();
  terminal.type("/save " + scratch.path("all") + "\n");
  ASSERT_TRUE(terminal.wait_for("(6 messages)")) << terminal.shown();
  const Json document = load_json(scratch.path("all"));
  const std::vector<Json>& saved = document.at("messages").items();
  EXPECT_EQ(saved[0].at("content"), "27 + 45 =");
  EXPECT_EQ(saved[2].at("content"), "27 + 45 =");
  EXPECT_EQ(saved[4].at("content"), "Zar");
  terminal.type("/quit\n");
  EXPECT_EQ(terminal.wait(), 0);
}

}  // namespace
}  // namespace heddle
