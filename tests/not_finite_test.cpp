// Logits that are no numbers end a run with the position and the first op that made one, on every executor and in
// every command. The weights are finite, as loading requires, but so large that results overflow.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/engine/batcher.h"
#include "heddle/engine/written.h"
#include "heddle/model/build/family.h"
#include "tests/support/command.h"
#include "tests/support/golden.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

// Another machine has the tree elsewhere.
const std::string kTree = [] {
  const char* carried = std::getenv("HEDDLE_TREE");
  return std::string(carried ? carried : HEDDLE_SOURCE_DIR);
}();
constexpr float kHuge = 3e38f;

void put(EditableTensor& tensor, size_t index, float value) {
  if (tensor.dtype == DType::kF32) return void(std::memcpy(&tensor.data[index * 4], &value, 4));
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  ASSERT_EQ(tensor.dtype, DType::kBf16);
  const auto half = uint16_t(bits >> 16);
  std::memcpy(&tensor.data[index * 2], &half, 2);
}

// Makes a GPT-2 whose learnt position 5 overflows in the first norm.
std::string overflowing_model(Scratch& scratch, const std::string& name) {
  const std::string folder = scratch.link_model(kTree + "/tests/goldens/models/gpt2-tiny", name);
  edit_tensors(folder + "/model.safetensors", [](EditableTensors& tensors) {
    const auto found = std::ranges::find_if(
        tensors, [](const auto& tensor) { return tensor.first.ends_with("wpe.weight"); });
    ASSERT_NE(found, tensors.end());
    const auto width = size_t(found->second.shape[1]);
    for (size_t i = 0; i < width; ++i) put(found->second, 5 * width + i, kHuge);
  });
  return folder;
}

class Overflow : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = get_executor(GetParam()).unavailable(); !why.empty()) GTEST_SKIP() << why;
    model = open_model(overflowing_model(scratch, "model"));
  }
  std::unique_ptr<Engine> engine(bool all_logits = false) const {
    return std::make_unique<Engine>(model, EngineOptions{.executor = GetParam(),
                                                         .workers = 3,
                                                         .threads = 2,
                                                         .max_context = 32,
                                                         .max_sequences = 2,
                                                         .page_size = 16,
                                                         .all_logits = all_logits});
  }
  static std::string error_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  // That position 5 was named, and the op.
  static void expect_named(const std::string& said) {
    for (const char* word : {"[logits] position 5: the logits contain NaN", "(layer_norm) at position 5"})
      EXPECT_NE(said.find(word), std::string::npos) << said;
  }

  Scratch scratch;
  std::shared_ptr<const Model> model;
};

constexpr i32 kPrompt[] = {5, 6, 7};

TEST_P(Overflow, EndsACallOfManySteps) {
  for (const SamplingSettings& sampling :
       {SamplingSettings{}, SamplingSettings{.temperature = 1},
        SamplingSettings{.temperature = 1, .top_p = 0.8f, .repetition_penalty = 1.2f, .top_k = 9}})
    for (const bool watched : {false, true}) {
      const auto running = engine();
      const SequenceId other = running->open({}), id = running->open(sampling);
      const StepRequest prompts[] = {{id, kPrompt, true}, {other, std::span(kPrompt).first(1), true}};
      const StepResult first = running->step(prompts, {.logits = false});
      std::vector<std::vector<i32>> told;
      StepOptions options{.steps = 8, .logits = false};
      if (watched)
        options.on_tokens = [&](std::span<const i32> tokens) {
          told.emplace_back(tokens.begin(), tokens.end());
          return true;
        };
      const StepRequest next[] = {{id, std::span(first.sampled).first(1), true},
                                  {other, std::span(first.sampled).last(1), true}};
      expect_named(error_of([&] { running->step(next, options); }));
      // Positions 3 and 4 have choices.
      if (!watched) continue;
      EXPECT_EQ(told.size(), 2u);
      for (const auto& tokens : told) EXPECT_GE(std::ranges::min(tokens), 0);
    }
}

TEST_P(Overflow, EndsAPromptWhoseLogitsAreWanted) {
  const i32 tokens[] = {5, 6, 7, 8, 9, 10, 11, 12};
  const auto every = engine(true);
  const SequenceId id = every->open({});
  const StepRequest all{id, tokens, true};
  const std::string first = error_of([&] { every->step(std::span(&all, 1)); });
  EXPECT_NE(first.find("[logits] position "), std::string::npos) << first;
  EXPECT_NE(first.find("(layer_norm) at position 5"), std::string::npos) << first;
  // The overflow of an earlier position reaches later ones through attention; it is named where it began.
  const auto last = engine();
  const StepRequest one{last->open({}), tokens, true};
  const std::string said = error_of([&] { last->step(std::span(&one, 1), {.logits = false}); });
  EXPECT_NE(said.find("position 7: the logits contain NaN"), std::string::npos) << said;
  EXPECT_NE(said.find("(layer_norm) at position 5"), std::string::npos) << said;
}

// The first of the rows whose logits are wanted is a number.
TEST_P(Overflow, IsFoundInALaterRow) {
  const i32 tokens[] = {5, 6, 7, 8, 9, 10};
  for (const bool logits : {false, true})
    for (const i32 steps : {1, 4}) {
      const auto running = engine();
      const SequenceId other = running->open({}), id = running->open({});
      const size_t size = steps == 1 ? 6 : 4;  // many steps reach position 5 later
      const StepRequest rows[] = {{other, std::span(tokens).first(1), true},
                                  {id, std::span(tokens).first(size), true}};
      if (steps == 1) {
        expect_named(error_of([&] { running->step(rows, {.logits = logits}); }));
        continue;
      }
      const StepResult first = running->step(rows, {.logits = false});
      const StepRequest next[] = {{other, std::span(first.sampled).first(1), true},
                                  {id, std::span(first.sampled).last(1), true}};
      expect_named(error_of([&] { running->step(next, {.steps = steps, .logits = false}); }));
    }
}

// A job of a batch, with what its follower was told.
struct Counted : BatchJob, JobFollower {
  Counted(std::vector<i32> text, size_t count, SamplingSettings how)
      : given(std::move(text)), most(count), settings(std::move(how)) {}
  std::span<const i32> prompt() const override { return given; }
  SamplingSettings sampling() const override { return settings; }
  bool take(i32 token) override {
    tokens.push_back(token);
    return tokens.size() < most;
  }
  void end(bool) override {}
  std::string name() const override { return "prompt of " + std::to_string(given.size()); }
  void runs() override {}
  void is_put_off() override {}
  void took() override {}
  void ended(const std::exception_ptr& error) override {
    gone = true;
    try {
      if (error) std::rethrow_exception(error);
    } catch (const Error& known) {
      said = known.what();
    }
  }
  std::vector<i32> given, tokens;
  size_t most;
  SamplingSettings settings;
  bool gone = false;
  std::string said = "no error";
};

TEST_P(Overflow, EndsOneJobOfABatchAndNotItsNeighbour) {
  for (const i32 steps : {1, 8}) {
    std::vector<i32> alone;
    for (const bool among : {false, true}) {
      const auto running = engine();
      Batcher batcher(*running);
      const SamplingSettings random{.temperature = 1, .seed = 3};
      const auto good = std::make_shared<Counted>(std::vector<i32>{5}, 5, random);
      const auto bad = std::make_shared<Counted>(std::vector<i32>{5, 6, 7}, 9, SamplingSettings{});
      batcher.add(good, {.follower = good});
      if (among) batcher.add(bad, {.follower = bad});
      while (!batcher.idle()) batcher.step(steps);
      EXPECT_EQ(good->said, "no error");
      EXPECT_TRUE(good->gone);
      EXPECT_EQ(running->free_pages(), 2 * 2);
      if (!among) {
        alone = good->tokens;
        continue;
      }
      EXPECT_EQ(good->tokens, alone);
      EXPECT_EQ(bad->tokens.size(), 3u) << "positions 2, 3 and 4 have choices";
      EXPECT_TRUE(bad->said.starts_with("[prompt of 3] [logits] position 5")) << bad->said;
      expect_named(bad->said);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Executors, Overflow,
                         testing::Values("threads", "reference", "launches", "megakernel"),
                         [](const auto& param) { return std::string(param.param); });

TEST(NotFinite, OnlySomeLogitsLeaveAChoice) {
  std::vector<float> logits(37, 1.5f);
  EXPECT_TRUE(can_choose(logits));
  for (const size_t at : {size_t(0), size_t(20), size_t(36)}) {
    for (const float bad : {NAN, INFINITY}) {
      std::vector<float> changed = logits;
      changed[at] = bad;
      EXPECT_FALSE(can_choose(changed)) << at << " is " << bad;
    }
    std::vector<float> masked(37, -INFINITY);
    EXPECT_FALSE(can_choose(masked));
    masked[at] = -3e38f;
    EXPECT_TRUE(can_choose(masked)) << "minus infinity is a token that is never chosen";
  }
}

// The shipped model with one weight, or one matrix, changed.
struct Commands : testing::Test {
  Scratch scratch;
  std::string model = scratch.link_model(kTree + "/models/storyteller", "model");
  std::string text = scratch.path("text"), prompts = scratch.path("prompts"), form = scratch.path("form");

  Commands() {
    write_file(text, "Once upon a time there was a fox.");
    write_file(prompts, "{\"prompt\": \"27 + 45 =\"}\n");
    write_file(form, "{{ messages[0]['content'] }}");
  }
  void change(const std::string& tensor, const std::function<void(EditableTensor&)>& edit) const {
    edit_tensors(model + "/model.safetensors", [&](EditableTensors& tensors) {
      ASSERT_TRUE(tensors.contains(tensor)) << tensor;
      edit(tensors.at(tensor));
    });
  }
  std::vector<Command> all() const {
    return {
        {.args = {"generate", model, "--prompt", "27 + 45 =", "--no-echo"}},
        {.args = {"generate", model, "--prompt", "27 + 45 =", "--no-echo", "--executor", "reference"}},
        {.args = {"generate", model, "--prompt", "Once", "--json", "--logprobs", "2", "--temperature", "1"}},
        {.args = {"generate", model, "--prompt", "Once", "--temperature", "1", "--typical-p", "0.5"}},
        {.args = {"generate", model, "--prompts", prompts, "--out", scratch.path("out")}},
        {.args = {"chat", model, "--template", form}, .input = "27 + 45 =\n"},
        {.args = {"eval", model, "--text", text}},
        {.args = {"logits", model, "--tokens", "1,2,3", "--out", scratch.path("logits")}}};
  }
  void expect_all(const std::vector<std::string>& words) const {
    for (const Command& command : all()) {
      const Outcome outcome = run_program(command);
      EXPECT_EQ(outcome.code, 1) << command.args[0] << ": " << outcome.out << outcome.err;
      EXPECT_EQ(outcome.out, "") << command.args[0];
      for (const std::string& word : words)
        EXPECT_NE(outcome.err.find(word), std::string::npos)
            << command.args[0] << ": no \"" << word << "\" in " << outcome.err;
    }
    EXPECT_FALSE(std::filesystem::exists(scratch.path("out")));
    EXPECT_FALSE(std::filesystem::exists(scratch.path("logits")));
  }
};

TEST_F(Commands, NameTheFirstOpOfAnOverflow) {
  change("model.layers.1.mlp.down_proj.weight", [](EditableTensor& tensor) {
    for (size_t i = 0; i < tensor.data.size() / size_t(size_of(tensor.dtype)); ++i) put(tensor, i, kHuge);
  });
  expect_all(
      {"[logits] position ", ": the logits contain NaN or +infinity", "layers.1.", "(linear) at position 0"});
}

TEST_F(Commands, NameThePromptOfABatch) {
  change("model.layers.1.mlp.down_proj.weight", [](EditableTensor& tensor) {
    for (size_t i = 0; i < tensor.data.size() / size_t(size_of(tensor.dtype)); ++i) put(tensor, i, kHuge);
  });
  write_file(prompts, "\n{\"prompt\": \"27 + 45 =\"}\n");
  for (const char* temperature : {"0", "1"}) {
    const Outcome outcome = run_program({.args = {"generate", model, "--prompts", prompts, "--out",
                                                  scratch.path("out"), "--temperature", temperature}});
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_NE(outcome.err.find("heddle: [" + prompts + ":2] [logits] position "), std::string::npos)
        << outcome.err;
  }
}

TEST_F(Commands, AnswerTheOtherPromptsOfABatch) {
  const std::string overflowing = overflowing_model(scratch, "overflowing"), out = scratch.path("out");
  std::filesystem::remove(overflowing + "/tokenizer.json");
  std::filesystem::copy(kTree + "/models/storyteller/tokenizer.json", overflowing + "/tokenizer.json");
  write_file(prompts, "{\"tokens\": [5, 6, 7], \"max_tokens\": 9}\n{\"tokens\": [5], \"max_tokens\": 4}\n");
  const Outcome outcome =
      run_program({.args = {"generate", overflowing, "--prompts", prompts, "--out", out}});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("heddle: [" + prompts + ":1] [logits] position 5"), std::string::npos)
      << outcome.err;
  EXPECT_TRUE(read_file(out).starts_with("{\"id\":2,")) << read_file(out);
}

TEST_F(Commands, NameAWeightThatIsNoNumber) {
  change("model.layers.1.mlp.down_proj.weight", [](EditableTensor& tensor) { put(tensor, 3, NAN); });
  expect_all({"model.layers.1.mlp.down_proj.weight", "element (0, 3) is nan; weights must be finite"});
}

}  // namespace
}  // namespace heddle
