// The program where the system gives it little: threads, memory, stack, time. It ends with a message and an exit code.
#include <csignal>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

[[maybe_unused]] Command sum(std::vector<ResourceLimit> limits, const std::string& threads = "2") {
  return {.args = {"generate", kStoryteller, "--prompt", "27 + 45 =", "--threads", threads},
          .limits = std::move(limits)};
}

#ifndef HEDDLE_SANITIZED  // sanitizers take more memory and stack than these limits leave

TEST(Adversity, ThreadsThatCannotStartAreCounted) {
  const Outcome outcome = run_program(sum({{RLIMIT_AS, 2L << 30}}, "512"));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  expect_words(outcome.err, {"heddle: [threads] ", " of 512 threads started", "--threads N", "ulimit -u"});
}

// Every place that asks for memory gets too little once.
TEST(Adversity, TooLittleMemoryIsAlwaysAMessage) {
  constexpr long kMega = 1L << 20, kMost = 400 * kMega;
  long limit = 8 * kMega;  // the least with which the process starts at all
  while (run_program({.args = {"--version"}, .limits = {{RLIMIT_AS, limit}}}).code != 0) {
    limit += kMega;
    ASSERT_LT(limit, kMost);
  }
  int failed = 0;
  for (limit += kMega; limit < kMost; limit += kMega + kMega / 16) {
    const Outcome outcome = run_program(sum({{RLIMIT_AS, limit}}));
    ASSERT_EQ(outcome.signal, 0) << limit << " bytes: " << outcome.err;
    EXPECT_EQ(outcome.err.find("bad_alloc"), std::string::npos) << outcome.err;
    if (outcome.code == 0) break;
    ++failed;
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_TRUE(outcome.err.find("heddle: [") != std::string::npos) << limit << " bytes: " << outcome.err;
    const bool says_what =
        outcome.err.find("bytes") != std::string::npos || outcome.err.find("MB") != std::string::npos;
    EXPECT_TRUE(says_what) << limit << " bytes: " << outcome.err;
    EXPECT_TRUE(outcome.out.empty() || outcome.out.ends_with('\n')) << limit << " bytes: " << outcome.out;
  }
  EXPECT_LT(limit, kMost) << "it never ran";
  EXPECT_GT(failed, 10);
}

TEST(Adversity, ASmallStackIsEnough) {
  const std::vector<ResourceLimit> limits = {{RLIMIT_STACK, 64 << 10}};
  const Outcome answer = run_program(sum(limits));
  EXPECT_EQ(answer.out, " 72.\n") << answer.err << ", signal " << answer.signal;
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"inspect", kStoryteller, "--all"},
           {"check", kStoryteller},
           {"logits", kStoryteller, "--tokens", "1,2,3", "--out", "/dev/null"}}) {
    const Outcome outcome = run_program({.args = args, .limits = limits});
    EXPECT_EQ(outcome.code, 0) << args[0] << ": " << outcome.err << ", signal " << outcome.signal;
  }
}

// Files that nest as deeply as a parser allows.
TEST(Adversity, ASmallStackIsEnoughForDeepFiles) {
  const std::string folder = HEDDLE_SOURCE_DIR "/tests/fuzz/chat_template/";
  for (const char* file :
       {"deep_parens", "deep_blocks", "recursive", "self_nesting", "elif_chain", "long_sum"}) {
    Command command = sum({{RLIMIT_STACK, 64 << 10}});
    command.args.insert(command.args.end(), {"--chat", "--template", folder + file, "--max-tokens", "1"});
    const Outcome outcome = run_program(command);
    EXPECT_EQ(outcome.signal, 0) << file << ": " << outcome.err;
  }
  Scratch scratch;
  const std::string deep = scratch.path("deep.json");
  replace(deep, std::string(100'000, '['));
  const Outcome outcome = run_program(
      {.args = {"schedule", kStoryteller, "--calibrate", deep}, .limits = {{RLIMIT_STACK, 64 << 10}}});
  EXPECT_EQ(outcome.code, 1) << outcome.signal;
  expect_words(outcome.err, {"nested deeper than "});
}

#endif

// The prompts come through a pipe whose other end says nothing: a command that does not look at Ctrl-C.
TEST(Adversity, CtrlCEndsACommandThatIsBusy) {
  Scratch scratch;
  const std::string pipe = scratch.path("prompts");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  int end = -1;
  Command command{.args = {"generate", kStoryteller, "--prompts", pipe, "--out", scratch.path("out")},
                  .seconds = 120};
  command.when = [&] {
    if (end < 0) end = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return end >= 0;  // the program reads
  };
  command.signal = SIGINT;
  const Outcome outcome = run_program(command);
  if (end >= 0) ::close(end);
  EXPECT_EQ(outcome.code, 130) << "signal " << outcome.signal << ": " << outcome.err;
}

}  // namespace
}  // namespace heddle
