// Compiled code that Python packages bring, so that a machine without a compiler runs: files of the cache's format in
// PACKAGES/heddle_cubins*/cuda<MAJOR>, where MAJOR is the compiler's and a file's name is code_name(). Code of other
// sources has other names and is never taken.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/backend/cuda/compiler/cubin_cache.h"
#include "heddle/ir/executor/device_code.h"

namespace heddle::cuda {

class PackagedCode {
 public:
  // Reads the packages of the interpreter that heddle runs in (set_python_packages), for this machine's driver.
  static const PackagedCode& of_process();
  // `driver`: what the driver is for, as 1000 * major; 0 where there is none. Code of a compiler of a newer major version
  // is passed over.
  PackagedCode(const std::vector<std::string>& packages, int driver);

  bool is_there() const { return !folders_.empty(); }
  // A damaged file is as one that is missing.
  std::optional<CubinCache::Entry> find(const std::string& name) const;
  // Lists the folders, with how many files each has, and those that are too new for the driver.
  std::string text() const;

 private:
  std::vector<std::string> folders_, too_new_;
};

// Writes the code that this process's compiler made to `folder`, a heddle_cubins* of a package to be.
void save_for_package(const DeviceCode& code, const std::string& folder);

}  // namespace heddle::cuda
