// Programs made ahead of time, as people use them: heddle compile, then --program, on the CPU's executors.
#include "heddle/ir/executor/artefact.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <type_traits>

#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "heddle/engine/artefact.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

const std::string kOther = HEDDLE_SOURCE_DIR "/tests/goldens/models/llama3-tiny";

class Artefacts : public testing::Test {
 protected:
  // The arguments fail with a message that has all of these words.
  static void expect_refused(const std::vector<std::string>& args, const std::vector<std::string>& words) {
    const Outcome outcome = run_program({.args = args});
    EXPECT_NE(outcome.code, 0) << args[0];
    expect_words(outcome.err, words);
  }
  static std::vector<std::string> sum(const std::vector<std::string>& more) {
    std::vector<std::string> args = {"generate", kStoryteller, "--prompt", "27 + 45 ="};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }

  Scratch scratch;
  const std::string file = scratch.path("story.heddle");
};

TEST_F(Artefacts, RunAsTheModelDoes) {
  const std::string said = output(
      {"compile", kStoryteller, "--device", "cpu", "--workers", "3", "--scheduler", "dag", "--out", file});
  expect_in(said, "3 workers, dag, contexts of 768");
  expect_in(said, " 512 rows of 1: ");
  EXPECT_EQ(output({"check", file}).find("REJECTED"), std::string::npos);
  expect_in(output({"inspect", file}), said);
  expect_in(output({"inspect", file, "--program", "--rows", "8"}), "step: 8 rows");
  EXPECT_EQ(output(sum({"--program", file})), " 72.\n");
  EXPECT_EQ(output(sum({"--program", file, "--prove", "--executor", "reference", "--max-context", "64"})),
            " 72.\n");
  expect_in(output({"bench", kStoryteller, "--program", file, "--positions", "4", "--prefill", "9",
                    "--rounds", "1", "--steps", "2"}),
            "decode at position 4");
  expect_in(output({"profile", kStoryteller, "--program", file, "--position", "9", "--steps", "3"}),
            "3 workers");
}

// A flag that is lost on its way from the command line to the programs is not among them.
TEST_F(Artefacts, KeepWhatEachFlagAsksFor) {
  std::vector<std::string> args = {"compile", kStoryteller, "--device", "cpu", "--out", file};
  std::map<std::string, std::string> asked;
  const EngineOptions options;
  visit_plain(options, [&](const std::string& name, const auto& value, const Option& option) {
    // No op of a CPU's programs has configurations; config_test keeps those of a GPU's.
    if (!option.flag || option.kept == Kept::kNot || name == "config") return;
    const std::string text = name == "weights" ? "floats" : "dag";
    asked[name] = std::is_same_v<decltype(value), const std::string&> ? text : "8";
    std::string flag = "--" + name;
    std::ranges::replace(flag, '_', '-');
    args.push_back(flag), args.push_back(asked[name]);
  });
  ASSERT_FALSE(asked.empty());
  args.push_back("--no-fuse");
  output(args);
  const Artefact artefact = load_artefact(file);
  for (const auto& [name, value] : asked) EXPECT_EQ(artefact.settings.at(name), value) << name;
  EXPECT_FALSE(options_of(artefact).passes.fuse_epilogues || options_of(artefact).passes.fuse_prologues);
}

TEST_F(Artefacts, AreTheSameBytesEachTime) {
  for (const std::string name : {"a", "b"})
    output({"compile", kStoryteller, "--device", "cpu", "--workers", "3", "--out", scratch.path(name)});
  EXPECT_EQ(read_file(scratch.path("a")), read_file(scratch.path("b")));
}

TEST_F(Artefacts, GiveTheSameLogits) {
  output({"compile", kOther, "--device", "cpu", "--workers", "3", "--logits", "--out", file});
  const std::vector<std::string> plain = {"logits", kOther, "--tokens", "5,6,7,8,9", "--out"};
  const auto logits = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> args = plain;
    args.push_back(scratch.path(name));
    args.insert(args.end(), more.begin(), more.end());
    output(args);
    return read_file(scratch.path(name));
  };
  EXPECT_EQ(logits("a", {"--program", file}), logits("b", {"--workers", "3", "--executor", "threads"}));
  expect_refused({"bench", kOther, "--program", file}, {"logits of every row; must be of the last"});
}

TEST_F(Artefacts, AreRefusedWithWantedAndFound) {
  output(
      {"compile", kStoryteller, "--device", "cpu", "--workers", "3", "--max-context", "64", "--out", file});
  expect_refused(sum({"--program", file, "--workers", "4"}), {file, "workers = 3; must be 4"});
  expect_refused(sum({"--program", file, "--scheduler", "dag"}), {"scheduler = level_batched; must be dag"});
  expect_refused(sum({"--program", file, "--max-context", "65"}), {"max_context = 64; must be 65"});
  expect_refused(sum({"--program", file, "--n", "2"}), {"max_sequences = 1; must be 2"});
  expect_refused(sum({"--program", file, "--no-fuse"}), {"has fused calls"});
  expect_refused(sum({"--prove"}), {"--program, which is not given"});
  expect_refused({"logits", kStoryteller, "--tokens", "5", "--out", scratch.path("l"), "--program", file},
                 {"logits of the last row; must be of every row"});
  expect_refused(sum({"--program", file, "--executor", "megakernel"}),
                 {"is for cpu; megakernel runs on cuda"});
  expect_refused({"bench", kOther, "--program", file}, {"is for checkpoint ", "this one is "});
}

// Another fine-tuning with the same shapes is another checkpoint; the number of files does not matter.
TEST_F(Artefacts, KnowTheirCheckpoint) {
  const std::string copy = scratch.path("copy");
  std::filesystem::copy(kStoryteller, copy);
  output({"compile", kStoryteller, "--device", "cpu", "--workers", "2", "--out", file});
  const std::vector<std::string> run = {"generate", copy, "--prompt", "27 + 45 =", "--program", file};
  EXPECT_EQ(output(run), " 72.\n");
  std::string bytes = read_file(copy + "/model.safetensors");
  bytes.back() = char(bytes.back() ^ 1);
  write_file(copy + "/model.safetensors", bytes);
  expect_refused(run, {"is for checkpoint ", "this one is "});
}

TEST_F(Artefacts, ThatWereDamagedAreRefused) {
  output({"compile", kStoryteller, "--device", "cpu", "--workers", "2", "--out", file});
  const std::string bytes = read_file(file);
  write_file(file, bytes.substr(0, bytes.size() / 2));
  expect_refused(sum({"--program", file}), {"the file was cut or changed"});
  std::string changed = bytes;
  changed[bytes.size() / 2] = char(changed[bytes.size() / 2] ^ 1);
  write_file(file, changed);
  expect_refused(sum({"--program", file}), {"its checksum does not fit"});
  expect_refused(sum({"--program", kStoryteller + "/config.json"}),
                 {"not a compiled program", "another kind of file"});
  output({"inspect", kStoryteller, "--workers", "2", "--save", file});
  expect_refused(sum({"--program", file}), {"is one program", "heddle compile"});
}

// Even if a proof fits: memory is only as large as the model makes it.
TEST_F(Artefacts, ProgramsOfOtherShapesAreRefused) {
  const std::string other = scratch.path("other.heddle");
  output({"compile", kStoryteller, "--device", "cpu", "--workers", "2", "--out", file});
  output({"compile", kOther, "--device", "cpu", "--workers", "2", "--out", other});
  Artefact artefact = load_artefact(file);
  artefact.programs = load_artefact(other).programs;
  save_artefact(artefact, file);
  expect_refused(sum({"--program", file}), {"llama T=", "its buffer ", " bytes; the model's has "});
}

TEST_F(Artefacts, NameTheirDevice) {
  const std::vector<std::string> compile = {"compile", kStoryteller, "--out", file};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), compile.begin(), compile.end());
    return more;
  };
  expect_refused(with({"--device", "gtx"}), {"--device gtx is not known", "h200", "a100", "cpu"});
  expect_refused(compile, {"give one of both"});
  expect_refused(with({"--arch", "sm_90a"}), {"--workers"});
  expect_refused(with({"--arch", "sm_1", "--workers", "4"}), {"sm_1 is no architecture", "sm_90a"});
  EXPECT_FALSE(std::filesystem::exists(file));
  const Variable hidden("HEDDLE_NVRTC", "/nowhere");
  expect_refused(with({"--device", "h200"}), {"libnvrtc) is not here"});
}

}  // namespace
}  // namespace heddle
