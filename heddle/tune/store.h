// Chosen configurations of one device and one heddle build, in a JSON file. One folder is written; shipped
// folders are only read. A result found on this machine is preferred to a shipped one.
#pragma once

#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "heddle/base/version.h"
#include "heddle/tune/key.h"
#include "heddle/tune/search.h"

namespace heddle::tune {

// The result of a search so far.
struct Record {
  std::optional<OpConfig> config;  // none: the search did not end
  Policy policy = Policy::kPickAny;
  u32 configs = 0;  // number of configurations that the search chose from
  double ns = 0;    // median of a call; 0: not timed
  Failures failures = {};

  bool operator==(const Record&) const = default;
  // True if a search by this policy among that many configurations would add nothing.
  bool answers(Policy asked, size_t asked_configs) const;
};

struct Place {
  std::string device;                     // its full name
  std::string folder = {};                // the folder that is written; empty: nothing is stored
  std::vector<std::string> shipped = {};  // folders that are only read, the preferred one first
  std::string build = std::string(build_name());
};

// Safe for any number of threads and processes.
class Store {
 public:
  // Reads the existing files. Throws Error(kIo) when a file is damaged, or belongs to another device or
  // build.
  explicit Store(Place place);

  std::optional<Record> find(const Key& key) const;
  // Stores the record, in the file too, unless the file has one that answers more. It keeps the failures of
  // both, and reads what other processes wrote meanwhile. Throws Error(kIo) when the file cannot be read or
  // written.
  void put(const Key& key, const Record& record);
  size_t size() const;
  // Path of the file of this device and build in a folder.
  std::string path_in(const std::string& folder) const;

 private:
  using Records = std::unordered_map<std::string, Record>;

  Records read(const std::string& folder) const;
  void write(const Records& records) const;

  const Place place_;
  mutable std::shared_mutex mutex_;
  Records written_, shipped_;
};

}  // namespace heddle::tune
