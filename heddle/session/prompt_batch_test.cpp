// A file of prompts on the shipped model. tests/generate_batch_test.cpp tests what remains after a crash.
#include "heddle/session/prompt_batch.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/model/build/family.h"

namespace heddle {
namespace {

const std::string kModel = HEDDLE_SOURCE_DIR "/models/storyteller";

struct PromptBatches : testing::Test {
  Tokenizer tokenizer = Tokenizer::load(kModel + "/tokenizer.json");
  std::shared_ptr<const Model> model = open_model(kModel);
  std::string folder = testing::TempDir() + "heddle_prompt_batch_test";

  PromptBatches() {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    write_file(
        folder + "/prompts",
        "{\"prompt\": \"27 + 45 =\"}\n{\"prompt\": \"9 + 2 =\", \"stop\": \"1\"}\n"
        "{\"prompt\": \"Once upon a time\", \"max_tokens\": 20, \"typical_p\": 0.5, \"temperature\": 1}\n");
  }
  ~PromptBatches() override { std::filesystem::remove_all(folder); }

  PromptBatch batch(i32 n = 1) const {
    return {{.prompts = folder + "/prompts", .results = folder + "/results", .n = n},
            model_settings(kModel),
            tokenizer,
            model->info()};
  }
  std::string results() const { return read_file(folder + "/results"); }
};

TEST_F(PromptBatches, GoOnWhereTheyWereStopped) {
  {
    PromptBatch begun = batch();
    EXPECT_EQ(begun.wanted(), 3u);
    Engine engine(model, {.max_context = begun.context(), .max_sequences = 1});
    begun.run(engine, [&] { return begun.done() >= 1; });
    EXPECT_EQ(begun.left(), 2u);
  }
  PromptBatch rest = batch();
  EXPECT_EQ(rest.done(), 1u);
  EXPECT_EQ(rest.context(), 264) << "eight tokens and an answer of 256";
  Engine engine(model, {.max_context = rest.context(), .max_sequences = 2});
  size_t calls = 0;
  const PromptBatchStats stats = rest.run(engine, never_stop, [&] { ++calls; });
  EXPECT_EQ(calls, 2u);
  EXPECT_EQ(stats.by_host, 1u);
  EXPECT_EQ(stats.by_program, 1u);
  EXPECT_EQ(rest.left(), 0u);
  EXPECT_NE(results().find("\"text\":\" 72.\",\"finish_reason\":\"eos\""), std::string::npos) << results();
  EXPECT_NE(results().find("\"text\":\" \",\"finish_reason\":\"stop\""), std::string::npos) << results();
  const std::string before = results();
  EXPECT_EQ(rest.run(engine).steps.steps, 0u) << "nothing is done twice";
  EXPECT_EQ(results(), before);
}

TEST_F(PromptBatches, RefuseOtherResults) {
  write_file(folder + "/results", "{\"id\": 1, \"prompt_tokens\": [1]}\n");
  EXPECT_THROW(batch(), Error);
  EXPECT_THROW(batch(0), Error);
}

}  // namespace
}  // namespace heddle
