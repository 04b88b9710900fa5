#include "heddle/model/hf/hub_cache.h"

#include <array>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "heddle/base/file.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariables[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"};

class HubCache : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(home);
    fs::create_directories(home);
    for (const char* name : kVariables) ::unsetenv(name);
    ::setenv("HOME", home.c_str(), 1);
  }
  void TearDown() override {
    ::setenv("HOME", before.c_str(), 1);
    fs::remove_all(home);
  }
  // A model with two snapshots, of which refs/main names the second.
  std::string add(const std::string& cache, const std::string& model = "models--org--a-b") const {
    const fs::path root = fs::path(home) / cache / model;
    for (const char* commit : {"0123456789abcdef", "fedcba9876543210"})
      fs::create_directories(root / "snapshots" / commit);
    fs::create_directories(root / "refs");
    write_file(root / "refs/main", "fedcba9876543210\n");
    return root;
  }
  static std::string message(const std::function<void()>& action) {
    try {
      action();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }

  const std::string before = std::getenv("HOME") ? std::getenv("HOME") : "";
  const std::string home = testing::TempDir() + "heddle_hub_cache_test";
};

TEST_F(HubCache, FindsTheSnapshotThatMainNames) {
  const std::string root = add(".cache/huggingface/hub");
  for (const std::string& given : {std::string("org/a-b"), root, root + "/"}) {
    const FoundModel found = find_model(given);
    EXPECT_EQ(found.path, root + "/snapshots/fedcba9876543210") << given;
    EXPECT_NE(found.said.find("org/a-b is the snapshot fedcba987654 in the cache"), std::string::npos)
        << found.said;
  }
}

TEST_F(HubCache, LooksWhereTheVariablesSay) {
  for (const auto& [variable, value, cache] : {std::array{"XDG_CACHE_HOME", "xdg", "xdg/huggingface/hub"},
                                               {"HF_HOME", "hf", "hf/hub"},
                                               {"HF_HUB_CACHE", "cache", "cache"}}) {
    const std::string root = add(cache);
    ::setenv(variable, (home + "/" + value).c_str(), 1);  // each goes before those that were set earlier
    EXPECT_EQ(find_model("org/a-b").path, root + "/snapshots/fedcba9876543210") << variable;
  }
  ::setenv("HF_HUB_CACHE", "~/cache", 1);
  EXPECT_NE(find_model("org/a-b").path.find("/cache/models--org--a-b"), std::string::npos);
}

TEST_F(HubCache, ASnapshotThatIsAloneNeedsNoMain) {
  const std::string root = add(".cache/huggingface/hub", "models--gpt2");
  fs::remove(root + "/refs/main");
  EXPECT_NE(
      message([] { find_model("gpt2"); }).find("refs/main names none of its snapshots; `hf download gpt2`"),
      std::string::npos);
  fs::remove_all(root + "/snapshots/0123456789abcdef");
  EXPECT_EQ(find_model("gpt2").path, root + "/snapshots/fedcba9876543210");
  fs::remove_all(root + "/snapshots");
  EXPECT_NE(message([] { find_model("gpt2"); }).find("without a snapshot"), std::string::npos);
}

TEST_F(HubCache, LeavesOtherPathsAlone) {
  for (const std::string given : {"nowhere", "/org/name", "./org/name", "a/b/c", "../a", "org/", "a b/c",
                                  "dir/x.heddle", "dir/model.gguf", ""})
    EXPECT_EQ(find_model(given).path, given);
  fs::create_directories(home + "/folder");
  EXPECT_EQ(find_model(home + "/folder").path, home + "/folder");
  EXPECT_EQ(find_model(home + "/folder").said, "");
}

TEST_F(HubCache, SaysHowToDownloadAModelThatIsNotHere) {
  const std::string text = message([] { find_model("meta-llama/Llama-3.2-1B"); });
  EXPECT_NE(text.find("[meta-llama/Llama-3.2-1B] there is no such folder"), std::string::npos) << text;
  EXPECT_NE(text.find("`hf download meta-llama/Llama-3.2-1B --local-dir Llama-3.2-1B`"), std::string::npos)
      << text;
  EXPECT_NE(text.find(home + "/.cache/huggingface/hub"), std::string::npos) << text;
  EXPECT_EQ(download_command(add("hub") + "/snapshots/fedcba9876543210"), "hf download org/a-b");
  EXPECT_EQ(download_command("some/folder"), "hf download ID --local-dir some/folder");
}

}  // namespace
}  // namespace heddle
