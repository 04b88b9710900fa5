// Holds the files that device programs include. The path of each is as it stands in #include.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/embedded_file.h"

namespace heddle::cuda {

std::span<const EmbeddedFile> device_sources();  // sorted by path
// Returns the path of an op's file in the folder of its family: op_source("route", ".cuh") is
// "heddle/ops/experts/route.cuh". Returns "" if there is no such file.
std::string_view op_source(std::string_view op, std::string_view suffix);

// The files that programs are compiled from. All are built in, but a file that a folder has at the same path
// ("heddle/ops/add/add.cuh") replaces the built-in one, so that a body can be changed and tried without a build.
struct SourceTree {
  std::vector<std::pair<std::string, std::string>> files;  // path, text
  std::vector<std::string> digests;                        // one for each file: its path and text
  std::vector<std::vector<size_t>> included;               // numbers of the files that each includes itself
  std::string folder;                                      // "": all are built in
  size_t replaced = 0;

  // Covers the files that a text includes, at any depth. Another file may change without a change of it.
  std::string digest_of_included(std::string_view text) const;
};

// Takes the files that `folder` has, and the built-in ones for the rest; "": all are built in. Throws Error(kIo)
// where a folder has none of them.
SourceTree source_tree_of(const std::string& folder);
// Returns the tree with the folder that HEDDLE_SOURCES names, if it is set. Reads the folder once, and says so on
// stderr.
const SourceTree& source_tree();

}  // namespace heddle::cuda
