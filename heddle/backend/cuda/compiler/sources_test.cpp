#include "heddle/backend/cuda/compiler/sources.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/ir/op.h"
#include "heddle/ir/registry.h"

namespace heddle::cuda {
namespace {

std::set<std::string> paths() {
  std::set<std::string> all;
  for (const EmbeddedFile& source : device_sources()) all.emplace(source.path);
  return all;
}

TEST(DeviceSources, AreTheFilesOfTheTree) {
  EXPECT_FALSE(device_sources().empty());
  for (const EmbeddedFile& source : device_sources())
    EXPECT_EQ(source.text, read_file(std::string(HEDDLE_SOURCE_DIR "/") + std::string(source.path)))
        << source.path;
}

TEST(DeviceSources, HoldEveryOp) {
  for (const OpSpec* op : all_ops())
    for (const char* suffix : {".h", ".cuh"})
      EXPECT_NE(op_source(op->name, suffix), "") << op->name << suffix;
  EXPECT_EQ(op_source("attention_merge", ".cuh"), "heddle/ops/attention/attention_merge.cuh");
  EXPECT_EQ(op_source("merge", ".cuh"), "") << "a part of a name is no name";
  EXPECT_EQ(op_source("cta", ".cuh"), "") << "what is in no folder of ops";
}

TEST(DeviceSources, AreClosedUnderInclusionAndFreeOfStandardHeaders) {
  const std::set<std::string> all = paths();
  const std::regex include(R"(#include ([<"])([^>"]+)[>"])");
  for (const EmbeddedFile& source : device_sources()) {
    const std::string text(source.text);
    for (std::sregex_iterator at(text.begin(), text.end(), include), end; at != end; ++at) {
      EXPECT_EQ((*at)[1], "\"") << source.path << " includes the standard header " << (*at)[2];
      EXPECT_TRUE(all.count((*at)[2])) << source.path << " includes " << (*at)[2]
                                       << ", which is not among the device sources of heddle/CMakeLists.txt";
    }
  }
}

TEST(DeviceSources, AFolderStandsIn) {
  const std::string folder = testing::TempDir() + "heddle_sources";
  const std::string path = "heddle/ops/add/add.cuh", file = folder + "/" + path;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  EXPECT_THROW(source_tree_of(folder), Error) << "nothing is there";
  write_file(file, "// another body\n");
  write_file(folder + "/heddle/notes.txt", "no source\n");
  const SourceTree plain = source_tree_of(""), tree = source_tree_of(folder);
  EXPECT_EQ(plain.replaced, 0u);
  EXPECT_EQ(tree.replaced, 1u);
  EXPECT_NE(tree.digest, plain.digest);
  ASSERT_EQ(tree.files.size(), plain.files.size());
  for (size_t i = 0; i < tree.files.size(); ++i)
    EXPECT_EQ(tree.files[i].second,
              plain.files[i].first == path ? "// another body\n" : plain.files[i].second);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace heddle::cuda
