// Keeps compiled programs on disk, one file each. It is safe under any number of processes: a file appears whole, by
// renaming, and carries a checksum, so that a damaged one is compiled again. Where the folder grows over its limit,
// the least recently used files are removed. A folder that cannot be written costs one warning and nothing else.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "heddle/base/types.h"

namespace heddle::cuda {

class CubinCache {
 public:
  static constexpr u64 kLimitBytes = u64{1} << 30;

  // In cache_folder(). Throws Error where there is none.
  static const CubinCache& of_process();
  explicit CubinCache(std::string folder, u64 limit_bytes = kLimitBytes);

  struct Entry {
    std::string cubin, log;
  };
  // `key` is a digest_of all that decides the entry. Counts as a use.
  std::optional<Entry> find(const std::string& key) const;
  // Reads an entry of any such folder, and changes nothing there.
  static std::optional<Entry> read(const std::string& folder, const std::string& key);
  void store(const std::string& key, const Entry& entry) const;

  struct Usage {
    size_t entries = 0;
    u64 bytes = 0;
  };
  Usage usage() const;
  Usage clear() const;  // returns what was removed; throws Error(kIo) where a file stays
  const std::string& folder() const { return folder_; }
  u64 limit_bytes() const { return limit_bytes_; }

 private:
  void evict() const;

  std::string folder_;
  u64 limit_bytes_;
};

}  // namespace heddle::cuda
