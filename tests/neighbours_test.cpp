// An answer's logits have the same bits alone and among any others, and however its prompt was cut into steps: on threads.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/engine/engine.h"
#include "heddle/model/build/family.h"

namespace heddle {
namespace {

struct Case {
  const char* model;
  i32 prompt = 12, answer = 6;  // tokens
};

// Other sequences, which read prompts of many lengths, answer, end, and begin again.
class Neighbours {
 public:
  Neighbours(Engine& engine, i32 count) : engine_(engine), others_(size_t(count)) {}
  ~Neighbours() {
    for (const Other& other : others_)
      if (other.open) engine_.close(other.id);
  }
  // Adds what some of them do in the next step, in `room` rows at most.
  void join(std::vector<StepRequest>& requests, i32 room) {
    ++step_;
    for (size_t i = 0; i < others_.size() && room > 0; ++i) {
      Other& other = others_[i];
      const size_t chance = i * 7 + size_t(step_) * 13;
      if (chance % 5 == 0) continue;  // it pauses
      if (other.open && engine_.length(other.id) > 20) engine_.close(other.id), other.open = false;
      if (!other.open) other.id = engine_.open({}), other.open = true;
      const i32 rows = chance % 3 > 0 ? 1 : std::min(room, i32(chance % 11) + 1);
      other.tokens.assign(size_t(rows), i32(chance % size_t(engine_.info().vocab)));
      requests.push_back({other.id, other.tokens, true});
      room -= rows;
    }
  }

 private:
  struct Other {
    SequenceId id = 0;
    bool open = false;
    std::vector<i32> tokens;
  };
  Engine& engine_;
  std::vector<Other> others_;
  i32 step_ = 0;
};

class Answer {
 public:
  Answer(Engine& engine, const Case& of) : engine_(engine), of_(of) {}

  // The logits of the last token of the prompt, which is read in steps of `chunk` rows, and of the answer's.
  std::vector<float> logits(i32 chunk, i32 neighbours) {
    Neighbours others(engine_, neighbours);
    const SequenceId id = engine_.open({});
    std::vector<float> all;
    for (i32 at = 0; at < of_.prompt + of_.answer;) {
      const i32 rows = at < of_.prompt ? std::min(chunk, of_.prompt - at) : 1;
      std::vector<i32> tokens;
      for (; i32(tokens.size()) < rows; ++at) tokens.push_back((at * 37 + at / 5) % engine_.info().vocab);
      std::vector<StepRequest> requests{{id, tokens, at >= of_.prompt}};
      others.join(requests, engine_.max_rows() - rows);
      std::rotate(requests.begin(), requests.begin() + 1, requests.end());  // its rows are the last ones
      const StepResult result = engine_.step(requests);
      if (at >= of_.prompt)
        all.insert(all.end(), result.logits.end() - engine_.info().vocab, result.logits.end());
    }
    engine_.close(id);
    return all;
  }

 private:
  Engine& engine_;
  const Case of_;
};

class AnswersOf : public testing::TestWithParam<Case> {};

TEST_P(AnswersOf, DependOnNoNeighbourAndNoCut) {
  const Case& of = GetParam();
  Engine engine(open_model(fmt::format("{}/{}", HEDDLE_SOURCE_DIR, of.model)),
                {.executor = "threads", .workers = 3, .max_sequences = 64});
  Answer answer(engine, of);
  const std::vector<float> wanted = answer.logits(1, 0);
  for (const i32 chunk : {5, 8, 60, 512})
    EXPECT_TRUE(answer.logits(chunk, 0) == wanted) << chunk << " rows a step";
  const i32 step = std::max(3, of.prompt / 3);
  for (const i32 count : {1, 7, 15, 40, 63})
    EXPECT_TRUE(answer.logits(step, count) == wanted) << count << " neighbours";
}

constexpr Case kCases[] = {{"models/storyteller"},
                           {"models/storyteller", 600, 3},
                           {"tests/goldens/models/qwen3-bf16"},
                           {"tests/goldens/models/llama-head64"},
                           {"tests/goldens/models/llama-f16"},
                           {"tests/goldens/models/llama3-tiny"},
                           {"tests/goldens/models/gemma3-tiny"},
                           {"tests/goldens/models/gpt2-bf16"},
                           {"tests/goldens/models/qwen3_moe-bf16"},
                           {"tests/goldens/models/deepseek_v3-bf16"},
                           {"tests/goldens/models/gpt_oss-tiny"},
                           {"tests/goldens/models/qwen3_5-bf16"},
                           {"tests/goldens/models/granitemoehybrid-tiny"},
                           {"tests/goldens/models/lfm2-tiny"}};

INSTANTIATE_TEST_SUITE_P(Models, AnswersOf, testing::ValuesIn(kCases), [](const auto& param) {
  std::string name = param.param.model;
  name = fmt::format("{}_{}", name.substr(name.rfind('/') + 1), param.param.prompt);
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace heddle
