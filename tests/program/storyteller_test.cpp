// The shipped model, end to end: it tells the same stories as with transformers, adds and subtracts numbers
// that it never saw together, and the program prints both.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include <gtest/gtest.h>

#include "heddle/base/json.h"
#include "heddle/base/json_to.h"
#include "heddle/engine/engine.h"
#include "heddle/model/build/family.h"
#include "heddle/text/tokenizer.h"
#include "tests/support/command.h"

namespace heddle {
namespace {

constexpr i32 kSequences = 16;
constexpr size_t kLongestAnswer = 20;  // tokens, the end included
// In logits. KV pages round to bf16, and so do wide products on some CPUs: 0.07 was seen.
constexpr double kNoise = 0.25;

const Json& expected() {
  static const Json json = load_json(kStoryteller + "/expected.json");
  return json;
}

// A token's logit minus the best of the others.
double margin_of(std::span<const float> logits, i32 token) {
  float other = -INFINITY;
  for (size_t i = 0; i < logits.size(); ++i)
    if (i32(i) != token) other = std::max(other, logits[i]);
  return double(logits[size_t(token)]) - double(other);
}

struct Storyteller : testing::Test {
  Tokenizer tokenizer = Tokenizer::load(kStoryteller + "/tokenizer.json");
  i32 end = tokenizer.token_to_id("<|end_of_text|>").value();
  Engine engine{open_model(kStoryteller), {.max_sequences = kSequences}};

  // Greedy answers of up to kSequences prompts, as one batch; an answer without an end is marked.
  std::vector<std::string> answers(std::span<const std::string> prompts) {
    struct Line {
      SequenceId id;
      std::vector<i32> next, text;
    };
    std::vector<Line> lines;
    for (const std::string& prompt : prompts)
      lines.push_back({engine.open({}), tokenizer.encode(prompt, true), {}});
    for (size_t step = 0; step < kLongestAnswer; ++step) {
      std::vector<StepRequest> requests;
      std::vector<Line*> asking;
      for (Line& line : lines)
        if (line.text.empty() || line.text.back() != end) {
          requests.push_back({line.id, line.next, true});
          asking.push_back(&line);
        }
      if (requests.empty()) break;
      const std::vector<i32> sampled = engine.step(requests).sampled;
      for (size_t i = 0; i < asking.size(); ++i) {
        asking[i]->text.push_back(sampled[i]);
        asking[i]->next = {sampled[i]};
      }
    }
    std::vector<std::string> result;
    for (const Line& line : lines) {
      result.push_back(tokenizer.decode(line.text, true) + (line.text.back() == end ? "" : " (no end)"));
      engine.close(line.id);
    }
    return result;
  }
};

TEST_F(Storyteller, TellsTheStoriesOfTransformers) {
  for (const Json& story : expected().at("stories").items()) {
    const std::string &prompt = story.at("prompt").as_string(), &text = story.at("text").as_string();
    const auto ids = json_to<std::vector<i32>>(story.at("ids"));
    const auto margins = json_to<std::vector<double>>(story.at("margins"));
    EXPECT_EQ(tokenizer.decode(ids, true), text);
    ASSERT_EQ(ids.back(), end) << prompt;
    const SequenceId sequence = engine.open({});
    std::vector<i32> next = tokenizer.encode(prompt, true);
    for (size_t i = 0; i < ids.size(); ++i) {
      const StepRequest request{sequence, next, true};
      const StepResult step = engine.step(std::span(&request, 1));
      const double margin = margin_of(step.logits, ids[i]);
      ASSERT_NEAR(margin, margins[i], kNoise) << prompt << ", token " << i << " after \""
                                              << tokenizer.decode(std::span(ids).first(i), true) << '"';
      if (margins[i] > kNoise) {
        EXPECT_EQ(step.sampled[0], ids[i]);
      }
      next = {ids[i]};
    }
    engine.close(sequence);
  }
}

TEST_F(Storyteller, SumsAreRight) {
  std::map<std::string, std::pair<int, int>> right;  // by kind: right, all
  std::vector<std::string> prompts, wanted;
  for (const Json& sum : expected().at("sums").items()) {
    prompts.push_back(sum.at("prompt").as_string());
    wanted.push_back(sum.at("answer").as_string());
  }
  for (size_t at = 0; at < prompts.size(); at += kSequences) {
    const auto some = std::span(prompts).subspan(at, std::min(size_t(kSequences), prompts.size() - at));
    const std::vector<std::string> got = answers(some);
    for (size_t i = 0; i < some.size(); ++i) {
      const std::string& prompt = some[i];
      const size_t sign = prompt.find_first_of("+-x");
      auto& [good, all] = right[prompt.ends_with(':') ? "?" : prompt.substr(sign, 1)];
      ++all;
      good += got[i] == wanted[at + i];
      if (got[i] != wanted[at + i])
        std::printf("%s%s; right is%s\n", prompt.c_str(), got[i].c_str(), wanted[at + i].c_str());
    }
  }
  ASSERT_EQ(right.size(), 4u);
  for (const auto& [kind, count] : right) {
    EXPECT_GE(count.second, 150) << kind;
    EXPECT_GE(count.first, 0.99 * count.second) << kind;
  }
}

// Runs a shell command and returns its stdout.
std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;) text += char(c);
  EXPECT_EQ(pipe == nullptr ? -1 : pclose(pipe), 0) << command;
  return text;
}

TEST(StorytellerProgram, PrintsStoriesAndSums) {
  const Json& story = expected().at("stories").items()[0];
  const auto margins = json_to<std::vector<double>>(story.at("margins"));
  const auto unclear = std::find_if(margins.begin(), margins.end(), [](double m) { return m < kNoise; });
  const auto ids = json_to<std::vector<i32>>(story.at("ids"));
  const std::string clear = Tokenizer::load(kStoryteller + "/tokenizer.json")
                                .decode(std::span(ids).first(size_t(unclear - margins.begin())), true);
  const std::string& prompt = story.at("prompt").as_string();
  const std::string generate =
      std::string(HEDDLE_PROGRAM) + " generate " + kStoryteller + " 2>/dev/null --prompt ";
  const std::string told = output_of(generate + "'" + prompt + "' --max-tokens 600");
  EXPECT_EQ(told.substr(0, clear.size()), clear);
  EXPECT_GT(told.size(), 800u);
  EXPECT_EQ(output_of(generate + "'27 + 45 =' --echo"), "27 + 45 = 72.\n");
  EXPECT_EQ(output_of("echo '7 x 8 =' | " + generate + "-"), " 56.\n");
}

}  // namespace
}  // namespace heddle
