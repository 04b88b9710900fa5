// Commands refuse stdin that cannot be read and results that would overwrite what is read. Prompts that do not fit
// are refused before any work.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

void expect_end(const Outcome& outcome, int code, const std::vector<std::string>& words) {
  EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
  expect_words(outcome.err, words);
}

TEST(Stdin, ThatCannotBeReadIsNoEmptyInput) {
  Scratch scratch;
  const std::string form = scratch.path("form");
  write_file(form, "{{ messages[0]['content'] }}");
  const std::string model = scratch.link_model(kStoryteller, "model");
  write_file(model + "/chat_template.jinja", "{{ messages[0]['content'] }}");
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"generate", kStoryteller, "--prompt", "-", "--max-tokens", "2"},
                                             {"chat", kStoryteller, "--template", form},
                                             {"tokenize", kStoryteller},
                                             {"tokenize", kStoryteller, "--decode"},
                                             {"tokenize", kStoryteller, "--json-lines"},
                                             {"template", model},
                                             {"template", model, "--json-lines"}}) {
    expect_end(run_program({.args = args, .input_from = "closed"}), 1,
               {"[stdin] cannot read: ", "Bad file descriptor"});
    expect_end(run_program({.args = args, .input_from = model}), 1,
               {"[stdin] cannot read: ", "Is a directory"});
  }
}

TEST(Stdin, LinesHaveAnyLengthAndTheLastNeedsNoEnd) {
  Scratch scratch;
  std::string input;
  for (const size_t length :
       {size_t(0), size_t(1), size_t(65535), size_t(65536), size_t(200001), size_t(3)}) {
    input += "\"" + std::string(length, 'a') + "\"\n";
  }
  input.pop_back();
  write_file(scratch.path("input"), input);
  const Outcome outcome = run_program(
      {.args = {"tokenize", kStoryteller, "--json-lines", "--plain"}, .input_from = scratch.path("input")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 6);
  EXPECT_TRUE(outcome.out.starts_with("[]\n["));
}

// Every argument that names a file to write, and a command that is complete but for it.
struct Writer {
  std::string argument;
  std::vector<std::string> args;
};

TEST(Outputs, NeverOverwriteWhatIsRead) {
  Scratch scratch;
  const std::string model = scratch.path("model"), prompts = scratch.path("prompts");
  std::filesystem::create_directory(model);
  for (const auto& file : std::filesystem::directory_iterator(kStoryteller))
    if (file.is_regular_file())  // not what makes the model
      std::filesystem::copy_file(file.path(), model / file.path().filename());
  write_file(prompts, "{\"prompt\": \"1 + 1 =\"}");
  const std::string costs = scratch.path("costs"), run = scratch.path("run.nanotrace");
  ASSERT_EQ(run_program({.args = {"profile", model, "--position", "1", "--steps", "1", "--costs", costs,
                                  "--out", run}})
                .code,
            0);
  const std::vector<Writer> writers = {
      {"--out", {"generate", model, "--prompts", prompts}},
      {"--out", {"bench", model, "--positions", "0", "--prefill", "0", "--steps", "1", "--rounds", "1"}},
      {"--out", {"compile", model, "--device", "h200"}},
      {"--save", {"inspect", model}},
      {"--out", {"logits", model, "--tokens", "1,2"}},
      {"--out", {"profile", model, "--position", "1", "--steps", "1"}},
      {"--costs", {"profile", model, "--position", "1", "--steps", "1"}},
      {"--plot", {"schedule", model, "--calibrate", costs}},
      {"--out", {"schedule", model, "--calibrate", costs, "--measure", "--steps", "1", "--rounds", "1"}},
      {"--out", {"trace", run}},
  };
  const std::string link = scratch.path("link.html"), hard = scratch.path("hard.html");
  for (const Writer& writer : writers) {
    std::vector<std::string> read = {model + "/model.safetensors", model + "/config.json"};
    if (writer.args[0] == "generate") read = {prompts, model + "/tokenizer.json"};
    if (writer.args[0] == "schedule") read.push_back(costs);
    if (writer.args[0] == "trace") read = {run};
    for (const std::string& file : read) {
      const std::string before = read_file(file);
      std::filesystem::remove(link), std::filesystem::remove(hard);
      std::filesystem::create_symlink(file, link);
      std::filesystem::create_hard_link(file, hard);
      for (const std::string& name :
           {file, link, hard, model + "/../" + file.substr(scratch.path("").size())}) {
        std::vector<std::string> args = writer.args;
        args.insert(args.end(), {writer.argument, name});
        expect_end(run_program({.args = args}), 2,
                   {fmt::format("[{}] {} would overwrite ", writer.argument, name), "give it another name"});
      }
      EXPECT_EQ(read_file(file), before) << writer.args[0];
    }
  }
  const std::string twice = scratch.path("twice");
  expect_end(run_program({.args = {"profile", model, "--costs", twice, "--out", twice}}), 2,
             {"each file needs its own name"});
  EXPECT_FALSE(std::filesystem::exists(twice));
}

TEST(Outputs, OfAConversationNeverOverwriteTheModel) {
  Scratch scratch;
  const std::string model = scratch.link_model(kStoryteller, "model"), form = scratch.path("form");
  write_file(form, "{{ messages[0]['content'] }}");
  for (const std::string& file : {model + "/config.json", form}) {
    const std::string before = read_file(file);
    const Outcome outcome =
        run_program({.args = {"chat", model, "--template", form}, .input = "/save " + file + "\n/quit\n"});
    expect_end(outcome, 1, {"[chat] " + file + " would overwrite", "no message was answered"});
    EXPECT_EQ(read_file(file), before);
  }
}

TEST(Models, OfTheHubAreTakenFromItsCache) {
  Scratch scratch;
  std::filesystem::create_directories(scratch.path("models--teller--of-stories/snapshots"));
  scratch.link_model(kStoryteller, "models--teller--of-stories/snapshots/0123456789ab");
  const Variable cache("HF_HUB_CACHE", scratch.path(""));
  for (const std::string& given :
       {std::string("teller/of-stories"), scratch.path("models--teller--of-stories")})
    for (const std::vector<std::string>& args :
         {std::vector<std::string>{"inspect", given},
          {"logits", given, "--tokens", "5,6", "--out", scratch.path("l")},
          {"tokenize", given},
          {"template", given},
          {"generate", given, "--prompt", "Once", "--max-tokens", "1"}}) {
      const std::string talk = R"([{"role": "user", "content": "17 + 25"}])";
      const Outcome outcome = run_program({.args = args, .input = args[0] == "template" ? talk : "Once"});
      EXPECT_NE(outcome.err.find("[teller/of-stories is the snapshot 0123456789ab in the cache of the hub"),
                std::string::npos)
          << args[0] << ": " << outcome.err;
      EXPECT_EQ(outcome.code, 0) << args[0] << ": " << outcome.err;
    }
  expect_end(
      run_program({.args = {"generate", "teller/of-facts", "--prompt", "Once"}}), 1,
      {"[teller/of-facts] there is no such folder", "`hf download teller/of-facts --local-dir of-facts`"});
}

// The weights cannot be loaded, so what is said was known before.
TEST(Prompts, ThatDoNotFitAreToldBeforeTheWeightsAreRead) {
  Scratch scratch;
  const std::string model = scratch.link_model(kStoryteller, "model");
  edit_tensors(model + "/model.safetensors", [](EditableTensors& tensors) {
    for (auto& [name, tensor] : tensors) std::ranges::fill(tensor.data, std::byte{0xff});  // NaN
  });
  const std::string ids = "1,2,3,4,5,6";
  expect_end(run_program({.args = {"generate", model, "--prompt", "27 + 45 =", "--max-context", "8"}}), 2,
             {"the prompt has 8 tokens", "the context holds 8", "--max-context"});
  expect_end(run_program({.args = {"generate", model, "--prompt", "27 + 45 =", "--max-context", "9"}}), 1,
             {"weights must be finite"});
  expect_end(run_program({.args = {"logits", model, "--tokens", ids, "--max-context", "5", "--out",
                                   scratch.path("out")}}),
             2, {"--tokens has 6", "the context holds 5"});
  std::string all;
  for (int i = 0; i < 800; ++i) all += "a b ";
  expect_end(run_program({.args = {"generate", model, "--prompt", "-"}, .input = all}), 2,
             {"the prompt has ", "the context holds 768"});
}

}  // namespace
}  // namespace heddle
