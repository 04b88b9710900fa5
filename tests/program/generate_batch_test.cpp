// A file of prompts, as people run it: to the end, again, after a crash, after Ctrl-C.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/json_to.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

struct GenerateBatch : testing::Test {
  Scratch scratch;
  std::string prompts = scratch.path("prompts.jsonl"), out = scratch.path("out.jsonl");

  Command command(std::vector<std::string> more = {}) const {
    Command made{.args = {"generate", kStoryteller, "--prompts", prompts, "--out", out}};
    made.args.insert(made.args.end(), more.begin(), more.end());
    return made;
  }
  // Writes sums; every third prompt is a story of up to `words` tokens.
  void write_prompts(int count, int words) const {
    std::string text;
    for (int i = 0; i < count; ++i) {
      Json line = Json::object({{"prompt", std::to_string(i) + " + 45 ="}});
      if (i % 3 == 2)
        line = Json::object(
            {{"prompt", "Once upon a time"}, {"max_tokens", words}, {"temperature", 0.8}, {"seed", i}});
      text += line.dump() + "\n";
    }
    write_file(prompts, text);
  }
  size_t lines() const {
    if (!std::filesystem::exists(out)) return 0;
    const std::string text = read_file(out);
    return size_t(std::ranges::count(text, '\n'));
  }
  std::map<int, Json> results() const {
    std::map<int, Json> made;
    std::istringstream text(read_file(out));
    for (std::string line; std::getline(text, line);) {
      Json result = parse_json(line, "out");
      const int id = json_to<int>(result.at("id"));
      EXPECT_TRUE(made.emplace(id, std::move(result)).second) << "id " << id << " twice";
    }
    return made;
  }
};

TEST_F(GenerateBatch, AnswersEveryLineAsItIsAnsweredAlone) {
  write_prompts(24, 30);
  const Outcome outcome = run_program(command({"--sequences", "5"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("steps of up to 5 sequences"), std::string::npos) << outcome.err;
  const auto all = results();
  ASSERT_EQ(all.size(), 24u);
  for (int i = 0; i < 24; i += 3)
    EXPECT_EQ(all.at(i + 1).at("text").as_string(), " " + std::to_string(i + 45) + ".");
  EXPECT_EQ(all.at(1).at("finish_reason").as_string(), "eos");
  EXPECT_EQ(all.at(3).at("finish_reason").as_string(), "length");
  EXPECT_EQ(all.at(3).at("tokens").size(), 30u);
  const Outcome alone = run_program({.args = {"generate", kStoryteller, "--prompt", "1 + 45 =", "--json"}});
  const Json one = parse_json(alone.out, "out");
  for (const char* key : {"text", "tokens", "prompt_tokens", "finish_reason"})
    EXPECT_EQ(one.at(key).dump(), all.at(2).at(key).dump());
  EXPECT_NE(all.at(3).at("text").as_string(), all.at(6).at("text").as_string()) << "each line has its seed";
}

TEST_F(GenerateBatch, GoesOnWhereItWasCut) {
  write_prompts(30, 60);
  ASSERT_EQ(run_program(command()).code, 0);
  const auto whole = results();
  const std::string text = read_file(out);
  write_file(out, text.substr(0, text.size() / 2));
  const size_t kept = lines();
  ASSERT_NE(text[text.size() / 2 - 1], '\n') << "the last line is cut";
  const Outcome again = run_program(command());
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("of a last line that was cut"), std::string::npos) << again.err;
  EXPECT_EQ(results().size(), whole.size());
  for (const auto& [id, result] : results())
    EXPECT_EQ(result.at("prompt_tokens").dump(), whole.at(id).at("prompt_tokens").dump());
  EXPECT_TRUE(read_file(out).starts_with(text.substr(0, text.find('\n')))) << "what was done stays";
  EXPECT_GT(kept, 5u);
  const std::string after = read_file(out);
  const Outcome nothing = run_program(command());
  EXPECT_EQ(nothing.code, 0);
  EXPECT_NE(nothing.err.find("30 of 30"), std::string::npos);
  EXPECT_EQ(read_file(out), after);
}

TEST_F(GenerateBatch, LosesNothingToASignal) {
  write_prompts(600, 200);
  Command interrupt = command({"--sequences", "2"});
  interrupt.when = [&] { return lines() >= 3; };
  interrupt.signal = SIGINT;
  const Outcome asked = run_program(interrupt);
  EXPECT_EQ(asked.code, 130) << asked.err;
  EXPECT_NE(asked.err.find("the same command goes on from here"), std::string::npos) << asked.err;
  const size_t first = results().size();
  EXPECT_GE(first, 3u);
  EXPECT_LT(first, 600u);
  EXPECT_EQ(read_file(out).back(), '\n');
  Command crash = command({"--sequences", "2"});
  crash.when = [&] { return lines() >= first + 3; };
  crash.signal = SIGKILL;
  EXPECT_EQ(run_program(crash).signal, SIGKILL);
  const std::string left = read_file(out);
  EXPECT_GE(lines(), first + 3);
  write_file(prompts, "{\"prompt\": \"another\", \"id\": 1}\n");
  const Outcome other = run_program(command());
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("has another prompt than"), std::string::npos) << other.err;
  EXPECT_EQ(read_file(out), left);
}

// Answers that have no seed share a random one, and a run that goes on takes it from the results.
TEST_F(GenerateBatch, ARandomSeedIsKeptInTheResults) {
  write_file(prompts,
             "{\"prompt\": \"27 + 45 =\", \"temperature\": 0}\n"
             "{\"prompt\": \"Once\", \"seed\": 5, \"max_tokens\": 12}\n"
             "{\"prompt\": \"Once\", \"max_tokens\": 12}\n"
             "{\"prompt\": \"Once upon\", \"max_tokens\": 12}\n");
  const std::vector<std::string> random = {"--temperature", "1", "--n", "2", "--sequences", "1"};
  const Outcome first = run_program(command(random));
  ASSERT_EQ(first.code, 0) << first.err;
  const size_t at = first.err.find("seed ");
  ASSERT_NE(at, std::string::npos) << first.err;
  const std::string seed = first.err.substr(at, first.err.find('\n', at) - at), all = read_file(out);
  const auto seeds_in = [&](const std::string& id) {
    std::set<int64_t> seeds;
    std::istringstream text(all);
    for (std::string line; std::getline(text, line);) {
      const Json one = parse_json(line, "out");
      const Json* has = one.at("made_with").find("seed");
      if (one.at("id").dump() == id) seeds.insert(has ? has->to_int().value() : 0);
    }
    return seeds;
  };
  const int64_t drawn = std::stoll(seed.substr(5));
  EXPECT_EQ(seeds_in("1"), (std::set<int64_t>{0, 1})) << "nothing is chosen at random";
  EXPECT_EQ(seeds_in("2"), (std::set<int64_t>{5, 6}));
  EXPECT_EQ(seeds_in("3"), (std::set<int64_t>{drawn, drawn + 1}));
  EXPECT_EQ(seeds_in("4"), (std::set<int64_t>{drawn, drawn + 1}));
  // Without its last two results.
  write_file(out, all.substr(0, all.rfind('\n', all.rfind('\n', all.size() - 2) - 1) + 1));
  const Outcome again = run_program(command(random));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find(seed + "\n"), std::string::npos) << again.err;
  EXPECT_EQ(read_file(out), all);
}

TEST_F(GenerateBatch, LinesHaveTheirSettingsAndSeveralAnswers) {
  write_file(
      prompts,
      "{\"prompt\": \"27 + 45 =\", \"eos_token_id\": 15}\n"
      "{\"prompt\": \"Once upon a time\", \"temperature\": 1, \"max_tokens\": 9, \"bad_words_ids\": [[13]]}\n"
      "{\"prompt\": \"27 + 45 =\", \"sequence_bias\": [[[222, 24], -100]], \"max_tokens\": 2}\n");
  const Outcome outcome = run_program(command({"--n", "2", "--logprobs", "3"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("tokens of 2 answers were chosen on the CPU"), std::string::npos) << outcome.err;
  std::istringstream text(read_file(out));
  std::map<std::pair<int, int>, Json> all;
  for (std::string line; std::getline(text, line);) {
    const Json one = parse_json(line, "out");
    all[{json_to<int>(one.at("id")), json_to<int>(one.at("index"))}] = one;
    ASSERT_EQ(one.at("logprobs").size(), one.at("tokens").size());
    for (const Json& token : one.at("logprobs").items()) {
      const std::vector<Json>& top = token.at("top").items();
      const auto of = [&](size_t place) { return top[place].items()[1].as_number(); };
      ASSERT_EQ(top.size(), 3u);
      EXPECT_LE(token.at("logprob").as_number(), of(0));
      EXPECT_GE(of(0), of(2));
    }
  }
  ASSERT_EQ(all.size(), 6u);
  const auto tokens_of = [&](int id, int index) {
    return json_to<std::vector<int>>(all.at({id, index}).at("tokens"));
  };
  EXPECT_EQ(all.at({1, 0}).at("text").as_string(), " 72") << "15 is the full stop";
  EXPECT_NE(tokens_of(2, 0), tokens_of(2, 1)) << "each answer has its seed";
  for (const int token : tokens_of(2, 0)) EXPECT_NE(token, 13);
  EXPECT_EQ(tokens_of(3, 1)[0], 222);
  EXPECT_NE(tokens_of(3, 1)[1], 24);
  const std::string before = read_file(out);
  EXPECT_EQ(run_program(command({"--n", "2", "--logprobs", "3"})).code, 0);
  EXPECT_EQ(read_file(out), before);
  const Outcome without = run_program(command({"--n", "2", "--top-k", "5"}));
  EXPECT_EQ(without.code, 1);
  EXPECT_NE(without.err.find("logprobs is 3 in the file and -1 now; top_k is 0 in the file and 5 now"),
            std::string::npos)
      << without.err;
  EXPECT_EQ(read_file(out), before);
  const Outcome fewer = run_program(command({"--logprobs", "3"}));
  EXPECT_EQ(fewer.code, 1);
  EXPECT_NE(fewer.err.find("give n as it was"), std::string::npos) << fewer.err;
}

}  // namespace
}  // namespace heddle
