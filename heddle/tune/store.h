// Chosen configurations of one device and one heddle build, kept in a JSON file. Folders that are shipped lie beneath the
// one that is written: what was found here is preferred to what came with a package.
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

// What a search has found so far.
struct Record {
  std::optional<Config> config;  // none: the search was not ended
  Policy policy = Policy::kPickAny;
  u32 configs = 0;  // that the search chose from
  double ns = 0;    // median of a call; 0: not timed
  Failures failures = {};

  bool operator==(const Record&) const = default;
  // A search by this policy among so many configurations would say the same, or less.
  bool answers(Policy asked, size_t asked_configs) const;
};

struct Place {
  std::string device;                     // its full name
  std::string folder = {};                // that is written; empty: nothing is kept
  std::vector<std::string> shipped = {};  // folders that are only read, the preferred one first
  std::string build = std::string(build_name());
};

// Safe for any number of threads and processes.
class Store {
 public:
  // Reads what there is. Throws Error(kIo) where a file is damaged, or is of another device or build.
  explicit Store(Place place);

  std::optional<Record> find(const Key& key) const;
  // Keeps the record, in the file too, unless the file has one that answers more. Failures of both stay known. What other
  // processes have written meanwhile is read. Throws Error(kIo) where the file cannot be read or written.
  void put(const Key& key, const Record& record);
  size_t size() const;
  // Where the file of this device and build lies in a folder.
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
