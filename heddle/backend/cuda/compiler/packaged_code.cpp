#include "heddle/backend/cuda/compiler/packaged_code.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include <fmt/ranges.h>

#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/base/error.h"
#include "heddle/base/python_packages.h"

namespace heddle::cuda {
namespace {

namespace fs = std::filesystem;

const std::string kMajor = "cuda";

// 13 of ".../cuda13"; 0: not such a folder.
int major_of(const fs::path& folder) {
  const std::string name = folder.filename();
  int major = 0;
  const char* const end = name.data() + name.size();
  return std::from_chars(name.data() + kMajor.size(), end, major).ptr == end ? major : 0;
}

}  // namespace

const PackagedCode& PackagedCode::of_process() {
  static const PackagedCode code(NvrtcPlaces::of_process().packages, known_driver_version());
  return code;
}

PackagedCode::PackagedCode(const std::vector<std::string>& packages, int driver) {
  for (const std::string& package : packaged_folders(packages))
    for (const std::string& made : paths_like(package, kMajor))
      if (const int major = major_of(made); major > 0)
        (driver > 0 && major > driver / 1000 ? too_new_ : folders_).push_back(made);
}

std::optional<CubinCache::Entry> PackagedCode::find(const std::string& name) const {
  for (const std::string& folder : folders_)
    if (std::optional<CubinCache::Entry> entry = CubinCache::read(folder, name)) return entry;
  return std::nullopt;
}

std::string PackagedCode::text() const {
  std::vector<std::string> all;
  for (const std::string& folder : folders_)
    all.push_back(fmt::format("{}: {} compiled programs", folder, CubinCache(folder).usage().entries));
  for (const std::string& folder : too_new_) all.push_back(folder + ": not taken, the driver is older");
  return fmt::format("{}", fmt::join(all, "; "));
}

void save_for_package(const DeviceCode& code, const std::string& folder) {
  const std::string made = fmt::format("{}/{}{}", folder, kMajor, Nvrtc::get().version() / 1000);
  const CubinCache files(made, std::numeric_limits<u64>::max());
  for (const auto& [name, cubin] : code) {
    files.store(name, {cubin, ""});
    if (!CubinCache::read(made, name)) fail(ErrorCode::kIo, "[{}/{}] cannot be written", made, name);
  }
}

}  // namespace heddle::cuda
