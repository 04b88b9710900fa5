// Sequences that share steps give the same text as each gives alone, whenever they come and go.
#include "heddle/engine/batcher.h"

#include <cmath>
#include <cstdio>
#include <map>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/model/build/family.h"
#include "heddle/text/tokenizer.h"

namespace heddle {
namespace {

const std::string kModel = HEDDLE_SOURCE_DIR "/models/storyteller";
// In logits. KV pages round to bf16, and which positions come from pages depends on how a prompt was cut.
constexpr float kNoise = 0.25f;

struct Line {
  std::vector<i32> prompt, tokens;
  std::vector<float> margins;  // first logit minus second logit
};

class Job : public BatchJob {
 public:
  Job(std::vector<i32> prompt, size_t most, i32 eos) : prompt_(std::move(prompt)), most_(most), eos_(eos) {}
  std::span<const i32> prompt() const override { return prompt_; }
  SamplingSettings sampling() const override { return settings; }
  bool shares_pages() const override { return shares; }
  bool is_ready() const override { return ready; }
  bool take(i32 token) override {
    EXPECT_FALSE(ended);
    tokens.push_back(token);
    return token != eos_ && tokens.size() < most_;
  }
  void end(bool full) override { ended = true, was_full = full; }

  std::vector<i32> tokens;
  bool ended = false, was_full = false, shares = true, ready = true;
  SamplingSettings settings;

 private:
  std::vector<i32> prompt_;
  size_t most_;
  i32 eos_;
};

struct Batches : testing::Test {
  Tokenizer tokenizer = Tokenizer::load(kModel + "/tokenizer.json");
  i32 eos = tokenizer.token_to_id("<|end_of_text|>").value();

  std::unique_ptr<Engine> engine(EngineOptions options) const {
    return std::make_unique<Engine>(open_model(kModel), std::move(options));
  }

  Line alone(Engine& engine, std::vector<i32> prompt, size_t most) const {
    Line line{.prompt = std::move(prompt)};
    const SequenceId sequence = engine.open({});
    std::vector<i32> next = line.prompt;
    for (constexpr size_t kChunk = 300; next.size() > kChunk;
         next.erase(next.begin(), next.begin() + kChunk)) {
      const StepRequest request{sequence, std::span(next).first(kChunk), false};
      engine.step(std::span(&request, 1));
    }
    while (line.tokens.size() < most && (line.tokens.empty() || line.tokens.back() != eos)) {
      const StepRequest request{sequence, next, true};
      StepResult step = engine.step(std::span(&request, 1));
      std::ranges::nth_element(step.logits, step.logits.begin() + 1, std::greater<>());
      line.margins.push_back(step.logits[0] - step.logits[1]);
      next = {step.sampled[0]};
      line.tokens.push_back(next[0]);
    }
    engine.close(sequence);
    return line;
  }

  // Compares up to the first token whose margin is within the noise.
  static void expect_same(const Line& line, const std::vector<i32>& tokens) {
    for (size_t i = 0; i < line.tokens.size(); ++i) {
      ASSERT_LT(i, tokens.size());
      if (line.margins[i] <= kNoise && line.tokens[i] != tokens[i]) return;
      ASSERT_EQ(line.tokens[i], tokens[i]) << "token " << i << " of " << line.tokens.size();
    }
    EXPECT_EQ(line.tokens.size(), tokens.size());
  }

  // A prompt of `words` words. Its first token makes it different from others.
  std::vector<i32> prompt_of(i32 number, size_t words) const {
    std::string text = std::to_string(number) + " + 45 = " + std::to_string(number + 45) + ".";
    while (words-- > 0) text += " Once upon a time there was a fox.";
    return tokenizer.encode(text, true);
  }
};

TEST_F(Batches, SayWhatEachSaysAlone) {
  const Json expected = load_json(kModel + "/expected.json");
  std::vector<std::vector<i32>> prompts;
  for (const Json& story : expected.at("stories").items())
    prompts.push_back(tokenizer.encode(story.at("prompt").as_string(), true));
  for (size_t i = 0; i < 20; ++i)
    prompts.push_back(tokenizer.encode(expected.at("sums").items()[i * 31].at("prompt").as_string(), true));
  prompts.push_back(prompt_of(7, 55));  // longer than the rows of a step
  const auto single = engine({.max_sequences = 1});
  const auto many = engine({.max_sequences = 6});
  Batcher batcher(*many);
  std::vector<std::shared_ptr<Job>> jobs;
  for (size_t i = 0; i < prompts.size(); ++i) {
    jobs.push_back(std::make_shared<Job>(prompts[i], 20 + i % 7 * 10, eos));
    batcher.add(jobs.back());
  }
  size_t alone_steps = 0;
  while (!batcher.idle()) batcher.step();
  for (size_t i = 0; i < prompts.size(); ++i) {
    ASSERT_TRUE(jobs[i]->ended);
    const Line line = alone(*single, prompts[i], 20 + i % 7 * 10);
    expect_same(line, jobs[i]->tokens);
    alone_steps += line.tokens.size();
  }
  EXPECT_EQ(batcher.stats().most_sequences, 6);
  EXPECT_GT(prompts.back().size(), size_t(many->max_rows()));
  EXPECT_LT(batcher.stats().steps, alone_steps / 3) << "sequences share steps";
}

TEST_F(Batches, EqualBeginningsAreReadOnce) {
  const auto beginning = prompt_of(3, 20);
  const auto many = engine({.max_sequences = 4});
  const auto single = engine({.max_sequences = 1});
  Batcher batcher(*many);
  std::vector<std::shared_ptr<Job>> jobs;
  size_t all = 0;
  for (i32 i = 0; i < 9; ++i) {
    auto prompt = beginning;
    const auto end = tokenizer.encode(" " + std::to_string(i) + " + 2 =", false);
    prompt.insert(prompt.end(), end.begin(), end.end());
    all += prompt.size();
    jobs.push_back(std::make_shared<Job>(prompt, 12, eos));
    batcher.add(jobs.back());
  }
  while (!batcher.idle()) batcher.step();
  const size_t page = size_t(many->page_size()), shared = beginning.size() / page * page;
  EXPECT_EQ(batcher.stats().shared_tokens, 8 * shared);
  EXPECT_EQ(batcher.stats().prompt_tokens, all - 8 * shared);
  for (const auto& job : jobs)
    expect_same(alone(*single, {job->prompt().begin(), job->prompt().end()}, 12), job->tokens);
}

TEST_F(Batches, AJobThatSharesNoPagesComputesItsWholePrompt) {
  const auto prompt = prompt_of(3, 20);
  const auto one = engine({.max_sequences = 1});
  Batcher batcher(*one);
  std::vector<std::vector<i32>> made;
  for (const bool shares : {false, false, true}) {
    const auto job = std::make_shared<Job>(prompt, 12, eos);
    job->shares = shares;
    batcher.add(job);
    while (!batcher.idle()) batcher.step();
    made.push_back(job->tokens);
    EXPECT_EQ(batcher.stats().shared_tokens > 0, shares);
  }
  EXPECT_EQ(made[0], made[1]);
}

TEST_F(Batches, ADroppedJobMakesRoom) {
  const auto one = engine({.max_sequences = 1});
  Batcher batcher(*one);
  const auto prompt = tokenizer.encode("27 + 45 =", true);
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < 3; ++i) {
    jobs.push_back(std::make_shared<Job>(prompt, 100, eos));
    batcher.add(jobs.back());
  }
  batcher.step();  // the first runs and the others wait
  batcher.drop(*jobs[0]);
  batcher.drop(*jobs[1]);
  batcher.drop(*jobs[1]);
  while (!batcher.idle()) batcher.step();
  EXPECT_FALSE(jobs[0]->ended || jobs[1]->ended);
  EXPECT_TRUE(jobs[1]->tokens.empty());
  EXPECT_EQ(tokenizer.decode(jobs[2]->tokens, true), " 72.");
}

TEST_F(Batches, AFullContextEndsOneAndNotOthers) {
  const auto some = engine({.max_context = 24, .max_sequences = 2});
  Batcher batcher(*some);
  const auto full = std::make_shared<Job>(tokenizer.encode("Once upon a time", true), 100, eos);
  const auto done = std::make_shared<Job>(tokenizer.encode("27 + 45 =", true), 100, eos);
  batcher.add(full);
  batcher.add(done);
  while (!batcher.idle()) batcher.step();
  EXPECT_TRUE(full->ended && full->was_full);
  EXPECT_EQ(full->tokens.size() + full->prompt().size(), 24u + 1);  // the last token needs no position
  EXPECT_TRUE(done->ended && !done->was_full);
  EXPECT_EQ(tokenizer.decode(done->tokens, true), " 72.");
  EXPECT_THROW(batcher.add(std::make_shared<Job>(std::vector<i32>(24, 5), 1, eos)), Error);
  EXPECT_THROW(batcher.add(std::make_shared<Job>(std::vector<i32>(), 1, eos)), Error);
}

// Takes the logits of its prompt.
class Rows : public Job {
 public:
  using Job::Job;
  bool wants_rows() const override { return true; }
  void take_rows(std::span<const float> rows) override {
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  std::vector<float> logits;
};

TEST_F(Batches, LogitsOfPromptsAreThoseOfAnEngineThatHasNoOthers) {
  const auto all = engine({.max_context = 640, .max_sequences = 3, .all_logits = true});
  const auto some = engine({.max_context = 640, .max_sequences = 3});
  Batcher batcher(*some);
  const auto answer = std::make_shared<Job>(tokenizer.encode("27 + 45 =", true), 100, eos);
  std::vector<std::shared_ptr<Rows>> jobs;
  for (const size_t words : {60, 3, 40}) {
    std::vector<i32> prompt = prompt_of(3, words);
    prompt.resize(std::min<size_t>(prompt.size(), 640));
    jobs.push_back(std::make_shared<Rows>(prompt, 0, eos));
    batcher.add(jobs.back());
  }
  EXPECT_EQ(jobs[0]->prompt().size(), 640u) << "a prompt that fills the context";
  batcher.add(answer);
  while (!batcher.idle()) batcher.step();
  EXPECT_EQ(tokenizer.decode(answer->tokens, true), " 72.");
  const size_t vocab = size_t(some->info().vocab);
  for (const auto& job : jobs) {
    ASSERT_TRUE(job->ended);
    ASSERT_EQ(job->logits.size(), job->prompt().size() * vocab);
    const SequenceId sequence = all->open({});
    const StepRequest request{sequence, job->prompt().first(std::min<size_t>(job->prompt().size(), 512)),
                              true};
    const StepResult step = all->step(std::span(&request, 1));
    all->close(sequence);
    float most = 0;
    for (size_t i = 0; i < step.logits.size(); ++i)
      most = std::max(most, std::abs(step.logits[i] - job->logits[i]));
    EXPECT_LT(most, kNoise);
  }
  EXPECT_EQ(batcher.stats().prompt_tokens,
            640 + jobs[1]->prompt().size() + jobs[2]->prompt().size() + answer->prompt().size());
}

TEST_F(Batches, PromptsLeaveAnswersTheirPace) {
  const auto some = engine({.max_sequences = 3});
  Batcher batcher(*some, [] { return false; }, {.prompt_rows = 40});
  std::vector<i32> prompt = prompt_of(3, 80);
  prompt.resize(200);
  const auto first = std::make_shared<Job>(prompt, 30, -1);
  batcher.add(first);
  batcher.step();
  EXPECT_EQ(first->tokens.size(), 1u) << "a prompt alone takes as many rows as there are";
  prompt[0] = 5;
  const auto second = std::make_shared<Job>(prompt, 1, -1);
  batcher.add(second);
  for (u64 read = 200; read < 400; read += 40) {
    EXPECT_EQ(batcher.stats().prompt_tokens, read);
    EXPECT_TRUE(second->tokens.empty());
    batcher.step();
  }
  EXPECT_EQ(first->tokens.size(), 6u) << "an answer beside it gets a token in each step";
  EXPECT_TRUE(second->ended);
}

// Steps of a few rows each, which round alike whoever shares them.
TEST_F(Batches, JobsThatGaveTheirPagesBackSayWhatTheyWouldHaveSaid) {
  std::vector<std::vector<i32>> made[2];
  for (const bool few : {false, true}) {
    const auto some =
        engine({.max_context = 512, .max_sequences = 3, .page_size = 16, .kv_pages = few ? 34 : 0});
    Batcher batcher(*some);
    std::vector<std::shared_ptr<Job>> jobs;
    for (i32 i = 0; i < 7; ++i) {
      jobs.push_back(std::make_shared<Job>(std::vector<i32>{1, 300 + i}, 200 + size_t(i) * 10, -1));
      jobs.back()->settings = {.temperature = 1, .repetition_penalty = 1.1f, .seed = u64(i)};
      if (i % 3 == 1)
        jobs.back()->settings.presence_penalty = 0.5f, jobs.back()->settings.frequency_penalty = 1;
      jobs.back()->shares = i % 2 == 0;
      batcher.add(jobs.back());
    }
    while (!batcher.idle()) ASSERT_TRUE(batcher.step(8));
    EXPECT_EQ(batcher.stats().put_off >= 2, few) << batcher.stats().put_off;
    EXPECT_EQ(batcher.stats().again_tokens >= 50, few) << batcher.stats().again_tokens;
    EXPECT_EQ(batcher.stats().prompt_tokens, 14u) << "what is read again does not count";
    EXPECT_EQ(some->free_pages(), few ? 34 : 3 * 32);
    for (const auto& job : jobs) made[few].push_back(job->tokens);
  }
  EXPECT_EQ(made[0], made[1]);
}

// Has the logits that its tokens were chosen by.
class Scored : public Job {
 public:
  using Job::Job;
  bool wants_logits() const override { return true; }
  i32 choose(std::span<const float> logits, i32 chosen) override {
    all.insert(all.end(), logits.begin(), logits.end());
    return chosen;
  }
  std::vector<float> all;
};

TEST_F(Batches, AJobThatIsNotReadyGivesWayAndGoesOnWithTheSameBits) {
  std::vector<i32> prompt = prompt_of(3, 80);
  prompt.resize(600);  // more than a step's rows
  std::vector<float> logits[4];
  for (const size_t sequences : {0, 2, 3}) {  // 0: nobody waits
    const auto some = engine({.max_sequences = std::max(i32(sequences), 2)});
    Batcher batcher(*some);
    const auto job = std::make_shared<Scored>(prompt, 24, -1);
    job->shares = false;
    job->settings = {.temperature = 1, .seed = 5};
    batcher.add(job, {.company = 1});
    while (job->tokens.size() < 12) batcher.step();
    if (sequences > 0) {
      std::vector<std::shared_ptr<Job>> others;
      for (i32 i = 0; i < 2; ++i) {
        others.push_back(std::make_shared<Job>(tokenizer.encode("27 + 45 =", true), 9, eos));
        batcher.add(others.back(), {.company = 2});
      }
      batcher.step();
      EXPECT_TRUE(others[0]->tokens.empty()) << "those of one company go first";
      job->ready = false;
      while (!others[0]->ended || !others[1]->ended) ASSERT_TRUE(batcher.step());
      for (const auto& other : others) EXPECT_EQ(tokenizer.decode(other->tokens, true), " 72.");
      EXPECT_FALSE(batcher.step()) << "the one that is left is not ready";
      EXPECT_EQ(batcher.waiting(), sequences == 2 ? 1u : 0u) << "it keeps its place where there is room";
      job->ready = true;
    }
    while (!batcher.idle()) ASSERT_TRUE(batcher.step());
    EXPECT_EQ(batcher.stats().put_off, sequences == 2 ? 1u : 0u);
    EXPECT_EQ(job->all.size(), 24 * size_t(some->info().vocab));
    logits[sequences] = job->all;
  }
  EXPECT_TRUE(logits[0] == logits[2]);
  EXPECT_TRUE(logits[0] == logits[3]);
}

// Steps of up to 8 rows round in one way, and those of up to 64 in another (ir/row_classes.h). So a few neighbours change nothing of
// what an answer is alone, and others change nothing as long as there are more than 8. `first` comes before them: whom a job
// finds is another in each run.
TEST_F(Batches, BitsAreTheSameAmongNeighboursThatComeAndGo) {
  const auto run = [&](i32 sequences, i32 fillers, i32 first, i32 jobs) {
    const auto some = engine({.max_context = 64, .max_sequences = sequences, .page_size = 16});
    Batcher batcher(*some);
    const auto add = [&](i32 i, size_t most, i32 priority) {
      const auto job = std::make_shared<Scored>(std::vector<i32>{1, 300 + i}, most, -1);
      job->settings = {.temperature = i % 3 > 0 ? 1.0f : 0.0f, .top_p = 0.95f, .seed = u64(i)};
      if (i % 4 > 1) job->settings.presence_penalty = 0.5f, job->settings.frequency_penalty = 0.5f;
      job->shares = i % 5 > 0;
      batcher.add(job, {.priority = priority});
      return job;
    };
    std::map<i32, std::vector<float>> logits;
    std::map<i32, std::shared_ptr<Scored>> all;
    for (i32 i = 0; i < fillers; ++i) all[1000 + i] = add(1000 + i, 56, 2);
    for (i32 i = 0; i < jobs; ++i) {
      const i32 at = (first + i) % jobs;
      all[at] = add(at, 3 + size_t(at * 7 % (sequences > 8 ? 13 : 40)), 0);
      if (i % 3 == 2) batcher.step();
    }
    while (std::ranges::any_of(all, [](const auto& one) { return one.first < 1000 && !one.second->ended; }))
      batcher.step();
    EXPECT_EQ(batcher.stats().most_sequences > 8, sequences > 8);
    for (const auto& [i, job] : all) logits[i] = job->all;
    return logits;
  };
  const auto together = run(4, 0, 0, 10), alone = run(1, 0, 0, 10);
  EXPECT_TRUE(together == alone);
  const auto many = run(64, 10, 0, 80), others = run(64, 10, 41, 80);
  for (i32 i = 0; i < 80; ++i) EXPECT_TRUE(many.at(i) == others.at(i)) << i;
}

// Up to 8 rows round as one does on a CPU, so that the bits decide as they would have.
TEST_F(Batches, GuessesChangeNoToken) {
  std::vector<std::vector<i32>> made[2];
  BatchStats stats[2];
  for (const bool draft : {false, true}) {
    const auto some = engine({.max_context = 256, .max_sequences = 2, .page_size = 16});
    Batcher batcher(*some, [] { return false; }, {.draft = draft});
    std::vector<std::shared_ptr<Job>> jobs;
    for (i32 i = 0; i < 5; ++i) {
      jobs.push_back(
          std::make_shared<Job>(std::vector<i32>{1, 18, 300 + i}, 80 + size_t(i) * 3, i == 2 ? eos : -1));
      if (i == 1) jobs.back()->settings = {.temperature = 1, .seed = 3};
      batcher.add(jobs.back());
    }
    while (!batcher.idle()) batcher.step();
    for (const auto& job : jobs) made[draft].push_back(job->tokens);
    stats[draft] = batcher.stats();
    EXPECT_EQ(some->free_pages(), 2 * 16);
  }
  EXPECT_EQ(made[0], made[1]);
  EXPECT_EQ(stats[0].guessed_tokens, 0u);
  EXPECT_GT(stats[1].right_guesses, 20u);
  EXPECT_LT(stats[1].steps + 10, stats[0].steps);
  EXPECT_EQ(stats[1].new_tokens, stats[0].new_tokens);
}

TEST_F(Batches, PrioritiesSayWhoGoesFirst) {
  const auto one = engine({.max_sequences = 1});
  Batcher batcher(*one);
  const auto prompt = tokenizer.encode("27 + 45 =", true);
  std::vector<std::shared_ptr<Job>> jobs;
  std::vector<i32> order;
  const auto add = [&](i32 priority) {
    jobs.push_back(std::make_shared<Job>(prompt, 100, eos));
    batcher.add(jobs.back(), {.priority = priority});
  };
  const auto step = [&] {
    batcher.step(1);
    for (i32 i = 0; i < i32(jobs.size()); ++i)
      if (jobs[size_t(i)]->ended && std::ranges::find(order, i) == order.end()) order.push_back(i);
  };
  for (const i32 priority : {0, -1, 0, 2}) add(priority);
  step();
  EXPECT_FALSE(jobs[3]->tokens.empty());
  add(3);  // takes the place of one that has begun
  step();
  EXPECT_FALSE(jobs[4]->tokens.empty());
  while (!batcher.idle()) step();
  EXPECT_EQ(order, (std::vector<i32>{4, 3, 0, 2, 1}));
  EXPECT_EQ(batcher.stats().put_off, 1u);
  for (const auto& job : jobs) EXPECT_EQ(tokenizer.decode(job->tokens, true), " 72.");
}

struct Told : JobFollower {
  void runs() override { said += 'r'; }
  void is_put_off() override { said += 'p'; }
  void took() override { said += 't'; }
  void ended(const std::exception_ptr& e) override { said += 'e', error = e; }
  std::string said;
  std::exception_ptr error;
};

class Thrower : public Job {
 public:
  using Job::Job;
  bool take(i32 token) override {
    if (tokens.size() == 2) fail(ErrorCode::kIo, "[here] enough");
    return Job::take(token);
  }
};

TEST_F(Batches, AJobThatThrowsEndsAlone) {
  const auto some = engine({.max_sequences = 2});
  Batcher batcher(*some);
  const auto prompt = tokenizer.encode("27 + 45 =", true);
  const auto thrower = std::make_shared<Thrower>(prompt, 100, eos);
  const auto good = std::make_shared<Job>(prompt, 100, eos);
  const auto thrown = std::make_shared<Told>(), fine = std::make_shared<Told>();
  batcher.add(thrower, {.follower = thrown});
  batcher.add(good, {.follower = fine});
  while (!batcher.idle()) batcher.step();
  EXPECT_EQ(thrown->said, "rtte");
  EXPECT_THROW(std::rethrow_exception(thrown->error), Error);
  EXPECT_FALSE(thrower->ended);
  EXPECT_EQ(fine->said, "rttttte");
  EXPECT_FALSE(fine->error);
  EXPECT_EQ(tokenizer.decode(good->tokens, true), " 72.");
  EXPECT_EQ(some->free_pages(), 2 * 12);
}

TEST_F(Batches, TooFewPagesAreRefused) {
  try {
    engine({.max_context = 512, .page_size = 16, .kv_pages = 31});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "[engine] kv_pages = 31; must be 32 or more, which one sequence of 512 positions needs alone");
  }
}

}  // namespace
}  // namespace heddle
