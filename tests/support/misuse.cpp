#include "tests/support/misuse.h"

#include <cstdio>

#include "tests/support/scratch.h"

namespace heddle {

void PrintTo(const Misuse& misuse, std::ostream* out) {
  *out << misuse.name;
}

std::string name_of_misuse(const testing::TestParamInfo<Misuse>& info) {
  return info.param.name;
}

void Misuses::run() const {
  const Misuse& misuse = GetParam();
  Scratch scratch;
  scratch.link_model(kGoldens + "models/llama2-tiny", "tiny");
  scratch.link_model(kGoldens + "models/llama-sharded", "shards");
  scratch.link_model(kStoryteller, "story");
  if (misuse.damage) misuse.damage(scratch.path(""));
  Command command = misuse.how;
  for (const std::string& arg : misuse.args)
    command.args.push_back(arg.starts_with('@') ? scratch.path(arg.substr(1)) : arg);
  const Strings before = scratch.files();
  const Outcome outcome = run_program(command);
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.code, misuse.code);
  EXPECT_TRUE(outcome.err.starts_with("heddle: "));
  for (const std::string& word : misuse.words)
    EXPECT_NE(outcome.err.find(word), std::string::npos) << "no \"" << word << "\"";
  EXPECT_EQ(scratch.files(), before) << "something was left behind";
  if (HasFailure()) std::printf("%s", outcome.err.c_str());
}

Strings generate(Strings more) {
  Strings args = {"generate", "@story"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

}  // namespace heddle
