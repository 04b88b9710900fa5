// What device programs include. The path of each is as it stands in #include.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/embedded_file.h"

namespace heddle::cuda {

std::span<const EmbeddedFile> device_sources();  // sorted by path
// The path of an op's file in the folder of its family, where there is one: op_source("route", ".cuh") is
// "heddle/ops/experts/route.cuh"; else "".
std::string_view op_source(std::string_view op, std::string_view suffix);

// What programs are compiled from: the files that are built in, but in place of each that a folder has at the same path
// ("heddle/ops/add/add.cuh") the one there, so that a body can be changed and tried without a build.
struct SourceTree {
  std::vector<std::pair<std::string, std::string>> files;  // path, text
  std::string digest;                                      // of all of them
  std::string folder;                                      // "": all are built in
  size_t replaced = 0;
};

// Throws Error(kIo) where the folder has none of them.
SourceTree source_tree_of(const std::string& folder);
// With the folder that HEDDLE_SOURCES names, if it does; read once, and said on stderr then.
const SourceTree& source_tree();

}  // namespace heddle::cuda
