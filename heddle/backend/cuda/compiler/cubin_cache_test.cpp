#include "heddle/backend/cuda/compiler/cubin_cache.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heddle/base/digest.h"
#include "heddle/base/file.h"

namespace heddle::cuda {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string key_of(const std::string& text) {
  const std::string_view part = text;
  return digest_of(std::span(&part, 1));
}

class Cache : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder.data()), nullptr); }
  void TearDown() override { fs::remove_all(folder); }

  std::string file_of(const std::string& key) const { return folder + "/" + key + ".cubin"; }
  // As if its last use lay so far back.
  void make_old(const std::string& path, std::chrono::seconds age) const {
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  }

  std::string folder = testing::TempDir() + "heddle_cache_XXXXXX";
};

TEST_F(Cache, GivesBackWhatWasStored) {
  const CubinCache cache(folder + "/made/when/needed");
  const std::string key = key_of("a"), bytes("\0\1\2", 3);
  EXPECT_FALSE(cache.find(key));
  cache.store(key, {bytes, "log"});
  ASSERT_TRUE(cache.find(key));
  EXPECT_EQ(cache.find(key)->cubin, bytes);
  EXPECT_EQ(cache.find(key)->log, "log");
  EXPECT_FALSE(cache.find(key_of("b")));
  EXPECT_EQ(cache.usage().entries, 1u);
  EXPECT_EQ(cache.clear().entries, 1u);
  EXPECT_FALSE(cache.find(key));
  EXPECT_EQ(cache.usage().bytes, 0u);
}

TEST_F(Cache, ADamagedFileIsAMissAndIsWrittenAgain) {
  const CubinCache cache(folder);
  const std::string key = key_of("a");
  const CubinCache::Entry entry = {std::string(1000, 'x'), "log"};
  cache.store(key, entry);
  const std::string good = read_file(file_of(key));
  for (size_t at : {size_t{0}, size_t{9}, size_t{30}, size_t{43}, good.size() - 1}) {
    std::string bad = good;
    bad[at] = char(bad[at] ^ 1);
    write_file(file_of(key), bad);
    EXPECT_FALSE(cache.find(key)) << "byte " << at;
  }
  for (size_t size : {size_t{0}, size_t{8}, good.size() - 1}) {
    write_file(file_of(key), good.substr(0, size));
    EXPECT_FALSE(cache.find(key)) << size << " bytes";
  }
  write_file(file_of(key), good + "x");
  EXPECT_FALSE(cache.find(key));
  cache.store(key, entry);
  ASSERT_TRUE(cache.find(key));
  EXPECT_EQ(cache.find(key)->cubin, entry.cubin);
}

TEST_F(Cache, WhatWasUsedLongestAgoGoesFirst) {
  const CubinCache cache(folder, 3500);
  const CubinCache::Entry entry = {std::string(1000, 'x'), ""};  // and 40 bytes around it
  for (const char* name : {"a", "b", "c"}) cache.store(key_of(name), entry);
  make_old(file_of(key_of("a")), 30s);
  make_old(file_of(key_of("b")), 20s);
  make_old(file_of(key_of("c")), 10s);
  EXPECT_TRUE(cache.find(key_of("a")));  // a use
  cache.store(key_of("d"), entry);
  EXPECT_TRUE(cache.find(key_of("a")));
  EXPECT_FALSE(cache.find(key_of("b")));
  EXPECT_TRUE(cache.find(key_of("c")));
  EXPECT_TRUE(cache.find(key_of("d")));
  EXPECT_LE(cache.usage().bytes, 3500u);
}

TEST_F(Cache, RemovesPartsWithoutAWriterAndNothingElse) {
  const CubinCache cache(folder);
  write_file(folder + "/.part-old", "x");
  write_file(folder + "/.part-new", "x");
  write_file(folder + "/notes.txt", "x");
  make_old(folder + "/.part-old", 2h);
  cache.store(key_of("a"), {"cubin", ""});
  EXPECT_FALSE(fs::exists(folder + "/.part-old"));
  EXPECT_TRUE(fs::exists(folder + "/.part-new"));
  EXPECT_EQ(cache.usage().entries, 1u);
  cache.clear();
  EXPECT_FALSE(fs::exists(folder + "/.part-new"));
  EXPECT_TRUE(fs::exists(folder + "/notes.txt"));
}

TEST_F(Cache, AFolderThatCannotBeWrittenCostsOneWarning) {
  write_file(folder + "/file", "");
  const CubinCache cache(folder + "/file/below");  // not even root can make it
  testing::internal::CaptureStderr();
  cache.store(key_of("a"), {"cubin", ""});
  cache.store(key_of("b"), {"cubin", ""});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find(folder + "/file/below"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_FALSE(cache.find(key_of("a")));
  EXPECT_EQ(cache.usage().entries, 0u);
  EXPECT_EQ(cache.clear().entries, 0u);
}

// The cubin of key `k`: long enough that a half written one would be seen.
std::string content_of(int k) {
  return std::string(20000 + size_t(k) * 1000, char('a' + k));
}

// Stores and finds a few keys in a folder that is too small for all. Returns how many finds were wrong.
int hammer(const std::string& folder, unsigned seed) {
  constexpr int kKeys = 8, kTurns = 200;
  const CubinCache cache(folder, 150000);  // about five of eight
  std::mt19937 random(seed);
  int wrong = 0, hits = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    const int k = int(random() % kKeys);
    const std::optional<CubinCache::Entry> found = cache.find(key_of(std::to_string(k)));
    if (found) {
      ++hits;
      wrong += found->cubin != content_of(k);
    } else {
      cache.store(key_of(std::to_string(k)), {content_of(k), "log"});
    }
    if (turn % 50 == 49 && seed == 0) cache.clear();
  }
  return hits > 0 ? wrong : -1;
}

TEST_F(Cache, SixteenProcessesAtOnceSeeWholeFilesOnly) {
  std::vector<pid_t> children;
  for (unsigned seed = 0; seed < 16; ++seed) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(hammer(folder, seed) == 0 ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".part-")) << entry.path();
  const CubinCache cache(folder, 150000);
  cache.store(key_of("last"), {"cubin", ""});
  EXPECT_LE(cache.usage().bytes, 150000u);
  EXPECT_TRUE(cache.find(key_of("last")));
}

}  // namespace
}  // namespace heddle::cuda
