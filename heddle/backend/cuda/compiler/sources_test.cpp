#include "heddle/backend/cuda/compiler/sources.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

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
  constexpr std::string_view kInclude = "#include ";
  for (const EmbeddedFile& source : device_sources()) {
    const std::string_view text = source.text;
    for (size_t at = text.find(kInclude); at != text.npos; at = text.find(kInclude, at)) {
      at += kInclude.size();
      const std::string path(text.substr(at + 1, text.find_first_of("\">", at + 1) - at - 1));
      EXPECT_EQ(text[at], '"') << source.path << " includes the standard header " << path;
      EXPECT_TRUE(all.contains(path)) << source.path << " includes " << path
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
  // The code of a text that reaches the file changes, and of no other.
  const auto code_changes = [&](const char* text) {
    return tree.digest_of_included(text) != plain.digest_of_included(text);
  };
  EXPECT_TRUE(code_changes("#include \"heddle/ops/add/add.cuh\"\n"));
  EXPECT_FALSE(code_changes("#include \"heddle/ops/scale/scale.cuh\"\n"));
  ASSERT_EQ(tree.files.size(), plain.files.size());
  for (size_t i = 0; i < tree.files.size(); ++i)
    EXPECT_EQ(tree.files[i].second,
              plain.files[i].first == path ? "// another body\n" : plain.files[i].second);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace heddle::cuda
