#include "heddle/backend/cuda/compiler/sources.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "heddle/base/digest.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"

namespace heddle::cuda {

std::string_view op_source(std::string_view op, std::string_view suffix) {
  constexpr std::string_view kFolder = "heddle/ops/";
  for (const EmbeddedFile& source : device_sources()) {
    const std::string_view path = source.path;
    if (path.starts_with(kFolder) && path.substr(path.rfind('/') + 1) == std::string(op).append(suffix))
      return path;
  }
  return "";
}

SourceTree source_tree_of(const std::string& folder) {
  SourceTree tree{.folder = folder};
  for (const EmbeddedFile& source : device_sources()) {
    const std::filesystem::path path = std::filesystem::path(folder) / source.path;
    const bool stands_in = !folder.empty() && is_file(path);
    tree.files.emplace_back(source.path, stands_in ? read_file(path.string()) : std::string(source.text));
    tree.replaced += stands_in;
  }
  if (!folder.empty() && tree.replaced == 0)
    fail(ErrorCode::kIo, "[{}] has none of the {} device sources; a path there is as heddle/ops/add/add.cuh",
         folder, tree.files.size());
  std::vector<std::string_view> parts;
  for (const auto& [path, text] : tree.files) parts.push_back(path), parts.push_back(text);
  tree.digest = digest_of(parts);
  return tree;
}

const SourceTree& source_tree() {
  static const SourceTree tree = [] {
    const char* folder = std::getenv("HEDDLE_SOURCES");
    SourceTree made = source_tree_of(folder ? folder : "");
    if (made.replaced > 0)
      std::fprintf(stderr, "heddle: %zu device sources of %s stand in for those that are built in\n",
                   made.replaced, made.folder.c_str());
    return made;
  }();
  return tree;
}

}  // namespace heddle::cuda
