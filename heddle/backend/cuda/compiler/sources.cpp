#include "heddle/backend/cuda/compiler/sources.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "heddle/base/digest.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"

namespace heddle::cuda {
namespace {

using NamedText = std::pair<std::string, std::string>;

// The numbers of the files that a text's own lines include. A line in a comment or in a part that is left out counts too.
std::vector<size_t> included_by(std::string_view text, const std::vector<NamedText>& files) {
  constexpr std::string_view kInclude = "#include \"";
  std::vector<size_t> found;
  for (size_t at = text.find(kInclude); at != text.npos; at = text.find(kInclude, at)) {
    at += kInclude.size();
    const std::string_view path = text.substr(at, text.find('"', at) - at);
    const auto file = std::ranges::lower_bound(files, path, {}, &NamedText::first);
    if (file != files.end() && file->first == path) found.push_back(size_t(file - files.begin()));
  }
  return found;
}

}  // namespace

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
  for (const auto& [path, text] : tree.files) {
    tree.digests.push_back(digest_of(std::array<std::string_view, 2>{path, text}));
    tree.included.push_back(included_by(text, tree.files));
  }
  return tree;
}

std::string SourceTree::digest_of_included(std::string_view text) const {
  std::vector<bool> reached(files.size());
  std::vector<size_t> next = included_by(text, files);
  while (!next.empty()) {
    const size_t file = next.back();
    next.pop_back();
    if (reached[file]) continue;
    reached[file] = true;
    next.insert(next.end(), included[file].begin(), included[file].end());
  }
  std::vector<std::string_view> parts;
  for (size_t file = 0; file < files.size(); ++file)
    if (reached[file]) parts.push_back(digests[file]);
  return digest_of(parts);
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
