#include "heddle/model/hf/hub_cache.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";

// The value of a variable, with "~" as the hub's tools read it; "": it is not set.
std::string variable(const char* name) {
  const char* const found = std::getenv(name);
  const std::string value = found ? found : "";
  const char* const home = std::getenv("HOME");
  return home && value.starts_with("~/") ? home + value.substr(1) : value;
}

// Where the hub's tools keep their cache; "": nowhere, because this user has no home.
std::string hub_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string folder = variable(name); !folder.empty()) return folder;
  if (const std::string home = variable("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "huggingface/hub";
  const std::string home = variable("HOME");
  return home.empty() ? "" : fs::path(home) / ".cache/huggingface/hub";
}

// True for what the hub takes as a name, with or without an organisation.
bool is_hub_name(std::string_view text) {
  constexpr std::array kFiles = {".heddle", ".gguf", ".safetensors", ".json", ".bin", ".pt"};
  const auto is_part = [](std::string_view part) {
    const auto fits = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
             c == '_' || c == '.';
    };
    return !part.empty() && part[0] != '.' && part[0] != '-' && std::ranges::all_of(part, fits);
  };
  const size_t slash = text.find('/');
  const bool parts =
      slash == text.npos ? is_part(text) : is_part(text.substr(0, slash)) && is_part(text.substr(slash + 1));
  return parts && std::ranges::none_of(kFiles, [&](const char* end) { return text.ends_with(end); });
}

// "models--org--name" -> "org/name"
std::string name_of(const std::string& folder) {
  std::string name = folder.substr(kPrefix.size());
  if (const size_t at = name.find("--"); at != name.npos) name.replace(at, 2, "/");
  return name;
}

std::string folder_of(std::string name) {
  if (const size_t slash = name.find('/'); slash != name.npos) name.replace(slash, 1, "--");
  return std::string(kPrefix) + name;
}

// Without a slash at its end.
fs::path trimmed(const std::string& path) {
  const fs::path made = fs::path(path).lexically_normal();
  return made.has_filename() ? made : made.parent_path();
}

bool is_kept_model(const fs::path& folder) {
  return folder.filename().string().starts_with(kPrefix) && is_folder(folder);
}

// The snapshot of a model in the cache.
FoundModel snapshot_of(const fs::path& root) {
  const std::string name = name_of(root.filename()), all = root / "snapshots";
  const std::vector<std::string> commits = is_folder(all) ? names_in(all) : std::vector<std::string>{};
  std::string commit;
  if (const std::string main = root / "refs/main"; is_file(main)) {
    commit = read_file(main);
    commit.erase(std::ranges::find_if(commit, [](char c) { return c == '\n' || c == '\r' || c == ' '; }),
                 commit.end());
  }
  if (commit.empty() && commits.size() == 1) commit = commits[0];
  if (std::ranges::find(commits, commit) == commits.end())
    fail(ErrorCode::kIo, "[{}] is {} in the cache of the hub, {}; `hf download {}` brings it", root.string(),
         name, commits.empty() ? "without a snapshot" : "whose refs/main names none of its snapshots", name);
  return {fs::path(all) / commit, fmt::format("{} is the snapshot {} in the cache of the hub, {}", name,
                                              commit.substr(0, 12), root.string())};
}

}  // namespace

FoundModel find_model(const std::string& given) {
  if (is_kept_model(trimmed(given))) return snapshot_of(trimmed(given));
  if (path_exists(given) || !is_hub_name(given)) return {given, ""};
  const std::string cache = hub_folder();
  if (const fs::path kept = fs::path(cache) / folder_of(given); !cache.empty() && is_kept_model(kept))
    return snapshot_of(kept);
  const size_t slash = given.find('/');
  if (slash == given.npos) return {given, ""};
  fail(ErrorCode::kIo,
       "[{}] there is no such folder, and no such model in the cache of the hub ({}); `hf download {} "
       "--local-dir {}` "
       "brings a model of that name",
       given, cache.empty() ? "which is nowhere: HOME is not set" : cache, given, given.substr(slash + 1));
}

std::string download_command(const std::string& folder) {
  const fs::path root = trimmed(folder).parent_path().parent_path();
  if (is_kept_model(root)) return "hf download " + name_of(root.filename());
  return "hf download ID --local-dir " + folder;
}

}  // namespace heddle
