#include "heddle/base/near_names.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

using Names = std::vector<std::string>;

const Names kCommands = {"bench", "cache",    "chat",    "check", "compile",
                         "env",   "generate", "inspect", "models"};
const Names kFlags = {"--prompt", "--prompts", "--max-tokens", "--temperature", "--top-k", "--top-p", "--n"};

TEST(NearNames, FindsWhatWasMisspelt) {
  EXPECT_EQ(near_names("genrate", kCommands), Names{"generate"});
  EXPECT_EQ(near_names("geneate", kCommands), Names{"generate"});
  EXPECT_EQ(near_names("genreate", kCommands), Names{"generate"});
  EXPECT_EQ(near_names("Generate", kCommands), Names{"generate"});
  EXPECT_EQ(near_names("model", kCommands), Names{"models"});
  EXPECT_EQ(near_names("benchmark", kCommands), Names{"bench"}) << "one begins with the other";
  EXPECT_EQ(near_names("gen", kCommands), Names{"generate"});
  EXPECT_EQ(near_names("sm_90", Names{"sm_80", "sm_90a"}), Names{"sm_90a"});
  EXPECT_EQ(near_names("--promt", kFlags), Names{"--prompt"});
  EXPECT_EQ(near_names("--topk", kFlags), Names{"--top-k"});
  EXPECT_EQ(near_names("--top-q", kFlags), (Names{"--top-k", "--top-p"}));
  EXPECT_EQ(near_names("--max_tokens", kFlags), Names{"--max-tokens"});
  EXPECT_EQ(near_names("--max-new-tokens", kFlags), Names{"--max-tokens"});
  EXPECT_EQ(near_names("--temp", kFlags), Names{"--temperature"});
}

TEST(NearNames, FindsNothingInOtherWords) {
  EXPECT_TRUE(near_names("serve", kCommands).empty());
  EXPECT_TRUE(near_names("", kCommands).empty());
  EXPECT_TRUE(near_names("x", kCommands).empty());
  EXPECT_TRUE(near_names("--quantize", kFlags).empty());
  EXPECT_TRUE(near_names("genrate", {}).empty());
}

TEST(NearNames, SaysThemInWords) {
  EXPECT_EQ(did_you_mean("--promt", kFlags), "; did you mean --prompt?");
  EXPECT_EQ(did_you_mean("--top-q", kFlags), "; did you mean --top-k or --top-p?");
  EXPECT_EQ(did_you_mean("serve", kCommands), "");
  EXPECT_EQ(meant_or_all("chekc", kCommands), "; did you mean check?");
  EXPECT_EQ(meant_or_all("a", Names{"add", "mm"}), "; there are add, mm");
}

}  // namespace
}  // namespace heddle
