#include "heddle/backend/cuda/compiler/cubin_cache.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "heddle/base/cache_folder.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"

namespace heddle::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".cubin", kPart = ".part-";
constexpr i64 kAbandonedSeconds = 3600;  // nobody writes a part that is as old as this any more

// A file begins with this header; the log and the cubin follow.
struct Header {
  char magic[8] = {'h', 'e', 'd', 'd', 'l', 'e', 'c', '1'};
  u64 log_bytes = 0, cubin_bytes = 0;
  XXH128_hash_t checksum = {};  // covers log and cubin
};

struct File {
  fs::path path;
  u64 bytes = 0;
  i64 used_ns = 0;  // modification time: a hit sets it, because access times are often off
  bool part = false;
};

std::string path_of(const std::string& folder, const std::string& key) {
  return folder + "/" + key + std::string(kSuffix);
}

// Lists the files of the cache in `folder`, including the parts that writers have not finished.
std::vector<File> files_of(const std::string& folder) {
  std::vector<File> files;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    const bool part = name.starts_with(kPart);
    struct stat info {};
    if ((!part && !name.ends_with(kSuffix)) || ::stat(entry.path().c_str(), &info) != 0) continue;
    files.push_back({entry.path(), u64(info.st_size),
                     i64(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec, part});
  }
  return files;
}

XXH128_hash_t checksum(std::string_view log, std::string_view cubin) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, log.data(), log.size());
  XXH3_128bits_update(state, cubin.data(), cubin.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return hash;
}

void warn_once(const std::string& folder, int error) {
  static std::atomic<bool> warned = false;
  if (!warned.exchange(true))
    std::fprintf(stderr,
                 "heddle: compiled programs are not kept: %s: %s; HEDDLE_CACHE names another folder\n",
                 folder.c_str(), std::strerror(error));
}

// Writes all pieces to a new file in `folder` and renames that file to `path`. Returns 0 or the error.
int write_whole(const std::string& folder, const std::string& path,
                std::span<const std::string_view> pieces) {
  std::string part = folder + "/" + std::string(kPart) + "XXXXXX";
  const int descriptor = ::mkostemp(part.data(), O_CLOEXEC);
  if (descriptor < 0) return errno;
  FileHandle file(::fdopen(descriptor, "wb"));
  bool good = true;
  for (const std::string_view piece : pieces)
    good = good && std::fwrite(piece.data(), 1, piece.size(), file.get()) == piece.size();
  good = good && std::fflush(file.get()) == 0 && std::rename(part.c_str(), path.c_str()) == 0;
  const int error = good ? 0 : errno;
  if (!good) ::unlink(part.c_str());
  return error;
}

}  // namespace

const CubinCache& CubinCache::of_process() {
  static const CubinCache cache(cache_folder());
  return cache;
}

CubinCache::CubinCache(std::string folder, u64 limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

std::optional<CubinCache::Entry> CubinCache::find(const std::string& key) const {
  std::optional<Entry> entry = read(folder_, key);
  if (entry) ::utimensat(AT_FDCWD, path_of(folder_, key).c_str(), nullptr, 0);
  return entry;
}

std::optional<CubinCache::Entry> CubinCache::read(const std::string& folder, const std::string& key) {
  std::string content;
  try {
    content = read_file(path_of(folder, key));
  } catch (const Error&) {  // the file is missing or unreadable: a miss
    return std::nullopt;
  }
  Header header, expected;
  if (content.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, content.data(), sizeof header);
  const u64 rest = content.size() - sizeof header;
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.log_bytes > rest ||
      header.cubin_bytes != rest - header.log_bytes)
    return std::nullopt;
  Entry entry;
  entry.log = content.substr(sizeof header, header.log_bytes);
  entry.cubin = content.substr(sizeof header + header.log_bytes);
  if (!XXH128_isEqual(checksum(entry.log, entry.cubin), header.checksum)) return std::nullopt;
  return entry;
}

void CubinCache::store(const std::string& key, const Entry& entry) const {
  std::error_code failure;
  fs::create_directories(folder_, failure);
  if (failure) return warn_once(folder_, failure.value());
  Header header;
  header.log_bytes = entry.log.size();
  header.cubin_bytes = entry.cubin.size();
  header.checksum = checksum(entry.log, entry.cubin);
  const std::string_view pieces[] = {
      {reinterpret_cast<const char*>(&header), sizeof header}, entry.log, entry.cubin};
  if (const int error = write_whole(folder_, path_of(folder_, key), pieces)) return warn_once(folder_, error);
  evict();
}

// Several processes may do this at once: each looks for itself, and a file that another has removed is no fault.
void CubinCache::evict() const {
  std::vector<File> files = files_of(folder_);
  const i64 abandoned_ns = (i64(::time(nullptr)) - kAbandonedSeconds) * 1'000'000'000;
  u64 bytes = 0;
  for (const File& file : files) {
    if (file.part && file.used_ns < abandoned_ns) ::unlink(file.path.c_str());
    if (!file.part) bytes += file.bytes;
  }
  if (bytes <= limit_bytes_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used_ns < b.used_ns; });
  for (const File& file : files) {
    if (bytes <= limit_bytes_) return;
    if (file.part) continue;
    ::unlink(file.path.c_str());
    bytes -= file.bytes;
  }
}

CubinCache::Usage CubinCache::usage() const {
  Usage usage;
  for (const File& file : files_of(folder_)) {
    if (file.part) continue;
    ++usage.entries;
    usage.bytes += file.bytes;
  }
  return usage;
}

CubinCache::Usage CubinCache::clear() const {
  Usage removed;
  for (const File& file : files_of(folder_)) {
    if (::unlink(file.path.c_str()) != 0 && errno != ENOENT)
      fail(ErrorCode::kIo, "[{}] cannot remove: {}", file.path.string(), std::strerror(errno));
    if (file.part) continue;
    ++removed.entries;
    removed.bytes += file.bytes;
  }
  return removed;
}

}  // namespace heddle::cuda
