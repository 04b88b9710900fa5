#include "heddle/model/hf/checkpoint.h"

#include <algorithm>
#include <filesystem>

#include "heddle/base/digest.h"
#include "heddle/base/error.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

// The index names files in its own folder and nowhere else.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string("/\\\0", 3)) == name.npos;
}

}  // namespace

Checkpoint::Checkpoint(const std::string& folder) : folder_(folder) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(folder))
    fail(ErrorCode::kIo, "[{}] is not a folder; a model is the folder that save_pretrained writes", folder);
  const std::string single = fs::path(folder) / kSingleFile, index = fs::path(folder) / kIndexFile;
  if (fs::exists(single)) {
    files_.emplace_back(single);
    for (const auto& [name, entry] : files_[0].tensors()) file_of_[name] = 0;
  } else if (fs::exists(index)) {
    open_shards(index);
  } else {
    fail(ErrorCode::kIo, "[{}] holds neither {} nor {}; other formats of weights are not read", folder,
         kSingleFile, kIndexFile);
  }
}

void Checkpoint::open_shards(const std::string& index_path) {
  const Json index = load_json(index_path, {.depth = 32});
  const Json* files = index.find("weight_map");
  if (!files || !files->is_object())
    fail(ErrorCode::kIo, "[{}] has no object 'weight_map', which maps tensors to files", index_path);
  std::map<std::string, size_t> number_of;  // file name -> index in files_
  for (const auto& [name, value] : files->members()) {
    if (!value.is_string() || !is_plain_file_name(value.as_string()))
      fail(ErrorCode::kIo, "[{}] tensor {} is said to be in {}; it must be a file name without folders",
           index_path, brief(name), brief(value));
    auto [place, is_new] = number_of.try_emplace(value.as_string(), files_.size());
    if (is_new) files_.emplace_back((std::filesystem::path(folder_) / place->first).string());
    const Safetensors& file = files_[place->second];
    if (!file.tensors().contains(name))
      fail(ErrorCode::kIo, "[{}] has no tensor {}, which {} says is there", file.path(), brief(name),
           kIndexFile);
    file_of_[name] = place->second;
  }
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : file_of_) names.push_back(name);
  return names;
}

size_t Checkpoint::bytes() const {
  size_t sum = 0;
  for (const auto& [name, file] : file_of_) sum += files_[file].tensors().at(name).size;
  return sum;
}

const Safetensors& Checkpoint::file_with(const std::string& name) const {
  auto found = file_of_.find(name);
  if (found == file_of_.end())
    fail(ErrorCode::kIo, "[{}] has no tensor {}; is config.json that of another model?", folder_,
         brief(name));
  return files_[found->second];
}

TensorView Checkpoint::weight(const std::string& name) const {
  TensorView tensor = file_with(name).view(name);
  if (!is_wide_float(tensor.dtype))
    fail(ErrorCode::kUnsupported, "[{}] tensor {} holds {}; a weight must be f32, f16 or bf16", tensor.file,
         brief(name), heddle::name(tensor.dtype));
  return tensor;
}

std::string Checkpoint::fingerprint() const {
  constexpr size_t kSample = 4096;
  std::vector<std::string> parts = {read_file(std::filesystem::path(folder_) / "config.json")};
  for (const auto& [name, file] : file_of_) {
    const TensorEntry& entry = files_[file].tensors().at(name);
    parts.push_back(fmt::format("{} {} {}", name, entry.type, shape_text(entry.shape)));
    const std::span<const std::byte> data = files_[file].bytes(name);
    const size_t size = std::min(data.size(), kSample), last = data.size() - size;
    for (const size_t begin : {size_t{0}, last / 2, last}) {
      const auto sample = data.subspan(begin, size);
      parts.emplace_back(reinterpret_cast<const char*>(sample.data()), sample.size());
    }
  }
  return digest_of(std::vector<std::string_view>(parts.begin(), parts.end()));
}

void Checkpoint::forget(const std::string& name) {
  auto found = file_of_.find(name);
  if (found != file_of_.end()) files_[found->second].forget(name);
}

}  // namespace heddle
