// All commands have in common: names and flags, devices, seeds, what goes to stdout, and JSON.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

std::string refusal(const std::vector<std::string>& args) {
  const Outcome outcome = run_program({.args = args});
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_EQ(outcome.out, "") << "stdout is for results";
  return outcome.err;
}

TEST(Grammar, HelpAndVersionInEveryForm) {
  const std::string help = output({"--help"});
  EXPECT_EQ(output({}), help);
  EXPECT_EQ(output({"help"}), help);
  EXPECT_EQ(output({"-h"}), help);
  expect_words(help, {"generate", "manual", "Examples:"});
  EXPECT_EQ(output({"help", "tune"}), output({"tune", "--help"}));
  EXPECT_EQ(output({"version"}), output({"--version"}));
  EXPECT_EQ(output({"-v"}), output({"--version"}));
  expect_words(refusal({"help", "tuen"}), {"'tuen' is not a command; did you mean tune?"});
}

TEST(Grammar, AskedForAnotherNameItNamesTheNearest) {
  expect_words(refusal({"genrate"}), {"'genrate' is not a command; did you mean generate?"});
  expect_words(refusal({"run"}), {"heddle chat MODEL", "heddle generate MODEL"});
  expect_words(refusal({"server", "m"}), {"did you mean serve?"});
  expect_words(refusal({"pull", "x"}), {"hf download"});
  expect_words(refusal({"generate", kStoryteller, "--promt", "x"}),
               {"unknown flag --promt; did you mean --prompt?"});
  expect_words(refusal({"generate", "--promt", "x"}), {"unknown flag --promt"});
  expect_words(refusal({"generate", kStoryteller, "--promt=x"}), {"unknown flag --promt; did"});
  expect_words(refusal({"generate", kStoryteller, "-p", "x"}), {"unknown flag -p; did you mean --prompt?"});
  expect_words(refusal({"generate", kStoryteller, "Once", "--max-tokens", "3"}),
               {"\"Once\" is not expected", "--prompt"});
  expect_words(refusal({"env", "--jsn"}), {"unknown flag --jsn; did you mean --json?"});
  expect_words(refusal({"models", "-1"}), {"\"-1\" is not expected"});
  expect_words(refusal({"inspect", kStoryteller, "--scheduler", "zigzg"}), {"did you mean zigzag?"});
  expect_words(refusal({"generate", kStoryteller, "--executor", "thread"}), {"did you mean threads?"});
  expect_words(refusal({"check", "--arch", "sm_90"}), {"did you mean sm_90a?"});
  expect_words(refusal({"check", "--arch", "h200"}), {"h200 is a card; its architecture is sm_90a"});
  expect_words(refusal({"check", "--arch", "sm_90a", "--ops", "sofmax"}), {"did you mean softmax?"});
  expect_words(refusal({"check", "sofmax"}), {"no folder, file or op; did you mean softmax?"});
}

TEST(Grammar, ADeviceHasOneForm) {
  const auto answer = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"generate", kStoryteller, "--prompt", "27 + 45 ="};
    args.insert(args.end(), more.begin(), more.end());
    return run_program({.args = args});
  };
  EXPECT_EQ(answer({"--device", "cpu"}).out, " 72.\n");
  EXPECT_EQ(answer({"--device", "cpu", "--executor", "reference", "--max-tokens", "1"}).code, 0);
  expect_words(answer({"--device", "cpu", "--executor", "megakernel"}).err,
               {"[--device] is cpu; megakernel"});
  expect_words(answer({"--device", "cuda:1", "--executor", "threads"}).err,
               {"[--device] is cuda:1; threads"});
  expect_words(answer({"--device", "gpu"}).err, {"'gpu' is no device", "did you mean cuda?"});
  expect_words(answer({"--device", "h200"}).err, {"is a card that heddle compile makes programs for"});
  expect_words(refusal({"compile", kStoryteller, "--device", "sm_90a", "--out", "x"}), {"--arch sm_90a"});
  expect_words(refusal({"compile", kStoryteller, "--device", "gpu", "--out", "x"}), {"did you mean cuda?"});
  expect_words(refusal({"compile", kStoryteller, "--device", "h20", "--out", "x"}), {"did you mean h200?"});
  expect_words(refusal({"tune", "matmul", "--backend", "cuda"}), {"--backend is now --device cpu"});
  expect_words(refusal({"tune", "matmul", "--device", "gpu"}), {"did you mean cuda?"});
}

TEST(Grammar, ARandomSeedIsSaidAndMakesTheTextAgain) {
  const std::vector<std::string> random = {"generate",     kStoryteller, "--prompt",      "Once",
                                           "--max-tokens", "24",         "--temperature", "1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), random.begin(), random.end());
    return run_program({.args = more});
  };
  const Outcome first = with({}), second = with({});
  ASSERT_TRUE(first.err.starts_with("seed ")) << first.err;
  const auto seed_of = [](const std::string& text) { return text.substr(5, text.find('\n') - 5); };
  EXPECT_NE(seed_of(first.err), seed_of(second.err));
  EXPECT_NE(first.out, second.out);
  const Outcome again = with({"--seed", seed_of(first.err)});
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(again.err.find("seed "), std::string::npos);
  const Outcome json = with({"--json"});
  EXPECT_EQ(parse_json(json.out, "out").at("seed").to_int(), std::stoll(seed_of(json.err)));
  const Outcome greedy = with({"--temperature", "0"});
  EXPECT_EQ(greedy.err.find("seed "), std::string::npos) << greedy.err;
}

TEST(Grammar, EchoIsTheSameOnAPipe) {
  const std::vector<std::string> sum = {"generate", kStoryteller, "--prompt", "27 + 45 ="};
  EXPECT_EQ(output(sum), " 72.\n");
  std::vector<std::string> echo = sum;
  echo.push_back("--echo");
  EXPECT_EQ(output(echo), "27 + 45 = 72.\n");
}

TEST(Grammar, WarnsOfManyThreads) {
  const Outcome outcome =
      run_program({.args = {"generate", kStoryteller, "--prompt", "27 + 45 =", "--threads", "999"}});
  EXPECT_EQ(outcome.out, " 72.\n");
  expect_words(outcome.err, {"note: 999 threads on ", "--threads 0"});
}

TEST(Grammar, ASavedProgramIsNotPrinted) {
  Scratch scratch;
  const Outcome outcome =
      run_program({.args = {"inspect", kStoryteller, "--save", scratch.path("p.heddle")}});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  expect_words(outcome.err, {"wrote "});
}

// A reader that has seen enough ends the command without a word.
TEST(Grammar, AClosedPipeIsNoFault) {
  Scratch scratch;
  const std::string model = kStoryteller, said = scratch.path("said"),
                    program = std::getenv("HEDDLE_PROGRAM") ? std::getenv("HEDDLE_PROGRAM") : HEDDLE_PROGRAM;
  for (const std::string& args : {std::string("env"), std::string("models"),
                                  "generate " + model + " --prompt Once --max-tokens 300 --temperature 0"}) {
    const std::string line = fmt::format("'{}' {} 2> '{}' | head -c 1 > /dev/null", program, args, said);
    EXPECT_EQ(std::system(line.c_str()), 0);
    const std::string text = read_file(said);
    EXPECT_EQ(text.find("heddle:"), std::string::npos) << args << ": " << text;
  }
}

struct JsonGrammar : testing::Test {
  Scratch scratch;
  const std::string tiny = HEDDLE_SOURCE_DIR "/tests/goldens/models/llama3-tiny";

  static Json json_of(std::vector<std::string> args) {
    args.push_back("--json");
    return parse_json(output(args), args[0]);
  }
};

TEST_F(JsonGrammar, IsThereWhereverATableIs) {
  const std::string program = scratch.path("p.heddle"), trace = scratch.path("t.nanotrace"),
                    artefact = scratch.path("a.heddle");
  EXPECT_GT(json_of({"env"}).at("ops").size(), 50u);
  EXPECT_EQ(json_of({"env"}).at("default").at("device"), 0);
  EXPECT_GT(json_of({"models"}).at("families").size(), 30u);
  EXPECT_EQ(json_of({"inspect", tiny}).at("layers"), 2);
  EXPECT_EQ(json_of({"inspect", tiny}).at("programs").items()[0].at("rows"), 1);
  output({"inspect", tiny, "--save", program, "--workers", "2"});
  EXPECT_EQ(json_of({"inspect", program}).at("workers"), 2);
  EXPECT_EQ(json_of({"check", program}).items()[0].at("proved"), true);
  EXPECT_EQ(json_of({"diff-programs", program, program}).at("same"), true);
  EXPECT_EQ(json_of({"compile", tiny, "--device", "cpu", "--workers", "2", "--out", artefact}).at("kernels"),
            0);
  EXPECT_EQ(json_of({"inspect", artefact}).at("device").at("name"), "cpu");
  const Json profile = json_of({"profile", tiny, "--position", "3", "--steps", "2", "--out", trace});
  EXPECT_EQ(profile.at("steps"), 2);
  EXPECT_EQ(json_of({"trace", trace}), profile);
  EXPECT_EQ(json_of({"schedule", tiny, "--compare", "--workers", "2"}).at("schedules").size(), 7u);
  EXPECT_EQ(json_of({"diff", tiny, "--tokens", "1,2", "--workers", "2"}).at("agree"), true);
  const Json layout = json_of({"layout", "mma.m16n8k16.bf16"});
  EXPECT_EQ(layout.at("cells").items()[1].items()[0], "4.0");
  EXPECT_EQ(json_of({"layout", "matmul"}).at("op"), "matmul");
  const Json bench =
      json_of({"bench", tiny, "--positions", "0", "--prefill", "0", "--rounds", "1", "--steps", "1"});
  EXPECT_EQ(bench.at("rows").items()[0].at("unit"), "s");
  const Variable store("HEDDLE_TUNED", scratch.path("tuned"));
  const std::vector<std::string> tune = {"tune", "matmul", "--size", "M=8,N=8,K=8", "--threads", "1"};
  EXPECT_GT(json_of(tune).at("tried").size(), 1u);
  EXPECT_EQ(json_of(tune).at("known_before"), true);
}

TEST_F(JsonGrammar, TablesFitEightyColumns) {
  const std::string trace = scratch.path("run.nanotrace"), saved = scratch.path("a.heddle");
  output({"profile", tiny, "--position", "3", "--steps", "2", "--out", trace});
  output({"inspect", tiny, "--save", saved});
  const Variable store("HEDDLE_TUNED", scratch.path("tuned"));
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"env"},
           {"models"},
           {"inspect", tiny, "--all"},
           {"inspect", tiny, "--graph"},
           {"inspect", tiny, "--program", "--all"},
           {"check", tiny},
           {"cache"},
           {"trace", trace},
           {"diff", tiny, "--tokens", "1,2", "--workers", "2"},
           {"diff-programs", saved, saved},
           {"tune", "matmul", "--size", "M=8,N=8,K=8", "--threads", "1"},
           {"profile", tiny, "--position", "3", "--steps", "2"},
           {"schedule", tiny, "--compare", "--workers", "2"},
           {"layout", "matmul"},
           {"layout", "wgmma.m64n64k16.bf16"},
           {"bench", tiny, "--positions", "0", "--prefill", "0", "--rounds", "2", "--steps", "2"}}) {
    std::istringstream lines(output(args));
    for (std::string line; std::getline(lines, line);) {
      // A word that is longer, such as the path of a library, is not broken.
      const std::string words = line.substr(std::min(line.find_first_not_of(' '), line.size()));
      EXPECT_TRUE(line.size() <= 80 || words.find(' ') == std::string::npos) << args[0] << ": " << line;
    }
  }
}

}  // namespace
}  // namespace heddle
