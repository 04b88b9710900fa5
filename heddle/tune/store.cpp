#include "heddle/tune/store.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "heddle/base/error.h"
#include "heddle/base/failure.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"

namespace heddle::tune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "heddle tuned configurations 1";

std::string file_name(const std::string& text) {
  std::string name;
  for (char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (plain || (!name.empty() && name.back() != '_')) name += plain ? c : '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

// Held while a file is read, changed and written again. The lock's file is never removed: otherwise two
// processes could hold locks on different files of one name.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : descriptor_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
    while (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX) != 0)
      if (errno != EINTR) break;
    if (descriptor_ < 0) fail(ErrorCode::kIo, "[{}] cannot be locked: {}", path, std::strerror(errno));
  }
  ~FileLock() { ::close(descriptor_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

Json json_of(const Record& record) {
  Json json = Json::object();
  if (record.config) json["config"] = record.config->text();
  json["policy"] = name(record.policy);
  json["configs"] = record.configs;
  json["ns"] = record.ns;
  if (!record.failures.empty()) json["failures"] = Json::object();
  for (const auto& [config, why] : record.failures) json["failures"][config.text()] = why;
  return json;
}

Record record_of(const Json& json) {
  Record record;
  const std::string policy = json.at("policy").as_string();
  require(policy == name(Policy::kPickAny) || policy == name(Policy::kPickBest), "policy '{}'", policy);
  record.policy = policy == name(Policy::kPickBest) ? Policy::kPickBest : Policy::kPickAny;
  const std::optional<int64_t> configs = json.at("configs").to_int();
  require(configs && std::in_range<u32>(*configs), "configs is {}; must be a count",
          brief(json.at("configs")));
  record.configs = u32(*configs);
  record.ns = json.at("ns").as_number();
  if (const Json* config = json.find("config")) record.config = OpConfig::parse(config->as_string());
  if (const Json* failures = json.find("failures"))
    for (const auto& [config, why] : failures->members())
      record.failures[OpConfig::parse(config)] = why.as_string();
  return record;
}

// Merges two records: the one that answers more (the new one on a tie), with the failures of both.
Record merged(const Record& old, const Record& fresh) {
  Record result = fresh.config && fresh.answers(old.policy, old.configs) ? fresh : old;
  if (!old.config) result = fresh;
  for (const Record* from : {&old, &fresh})
    result.failures.insert(from->failures.begin(), from->failures.end());
  return result;
}

}  // namespace

bool Record::answers(Policy asked, size_t asked_configs) const {
  if (!config) return false;
  if (policy == Policy::kPickBest) return asked == Policy::kPickAny || configs >= asked_configs;
  return asked == Policy::kPickAny;
}

Store::Store(Place place) : place_(std::move(place)) {
  require(!file_name(place_.device).empty() && !file_name(place_.build).empty(),
          "[tune] a store is for device '{}' and build '{}'; each must have a name", place_.device,
          place_.build);
  if (!place_.folder.empty()) written_ = read(place_.folder);
  for (const std::string& folder : place_.shipped) shipped_.merge(read(folder));
}

std::string Store::path_in(const std::string& folder) const {
  return fmt::format("{}/{}/{}.json", folder, file_name(place_.device), file_name(place_.build));
}

Store::Records Store::read(const std::string& folder) const {
  const std::string path = path_in(folder);
  if (!path_exists(path)) return {};
  const std::string text = read_file(path);
  Records records;
  try {
    const Json json = parse_json(text, "text");
    require(json.at("format") == kFormat, "its format is {}; must be \"{}\"", json.at("format").dump(),
            kFormat);
    require(json.at("device") == place_.device && json.at("build") == place_.build,
            "it is for device {} and build {}; must be for \"{}\" and \"{}\"", json.at("device").dump(),
            json.at("build").dump(), place_.device, place_.build);
    for (const auto& [key, record] : json.at("records").members()) records.emplace(key, record_of(record));
  } catch (const std::exception& error) {
    fail(ErrorCode::kIo, "[{}] is not a usable file of tuned configurations: {}; remove it to tune again",
         path, message_of(error));
  }
  return records;
}

void Store::write(const Records& records) const {
  Json json = Json::object(
      {{"format", kFormat}, {"device", place_.device}, {"build", place_.build}, {"records", Json::object()}});
  for (const auto& [key, record] : std::map<std::string, Record>(records.begin(), records.end()))
    json["records"][key] = json_of(record);
  write_file(path_in(place_.folder), json.dump(1) + "\n");
}

std::optional<Record> Store::find(const Key& key) const {
  const std::shared_lock lock(mutex_);
  const auto own = written_.find(key.text()), shipped = shipped_.find(key.text());
  if (own == written_.end() && shipped == shipped_.end()) return std::nullopt;
  // A search of one's own that did not end knows only what failed.
  if (own != written_.end() && (own->second.config || shipped == shipped_.end())) return own->second;
  Record record = shipped->second;
  if (own != written_.end()) record.failures.insert(own->second.failures.begin(), own->second.failures.end());
  return record;
}

void Store::put(const Key& key, const Record& record) {
  const std::lock_guard lock(mutex_);
  const auto keep = [&] {
    const auto [at, added] = written_.try_emplace(key.text(), record);
    if (!added) at->second = merged(at->second, record);
  };
  if (place_.folder.empty()) return keep();
  const std::string path = path_in(place_.folder);
  std::error_code failure;
  fs::create_directories(fs::path(path).parent_path(), failure);
  if (failure) fail(ErrorCode::kIo, "[{}] cannot be made: {}", place_.folder, failure.message());
  const FileLock file_lock(path + ".lock");
  written_ = read(place_.folder);
  keep();
  write(written_);
}

size_t Store::size() const {
  const std::shared_lock lock(mutex_);
  size_t size = written_.size();
  for (const auto& [key, record] : shipped_) size += written_.contains(key) ? 0 : 1;
  return size;
}

}  // namespace heddle::tune
