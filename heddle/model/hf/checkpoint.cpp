#include "heddle/model/hf/checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>

#include "heddle/base/digest.h"
#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/memory.h"

namespace heddle {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

// The index names files in its own folder and nowhere else.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string("/\\\0", 3)) == name.npos;
}

constexpr std::string_view kBlocks = "_blocks";
constexpr size_t kBlockBytes = 16;  // hold 32 codes

std::string scales_of(const std::string& blocks) {
  return blocks.substr(0, blocks.size() - kBlocks.size()) + "_scales";
}

// Doubles as floats.
std::vector<std::byte> rounded(std::span<const std::byte> bytes) {
  auto made = make_vector<std::byte>(bytes.size() / 2, "a tensor of doubles as floats");
  for (size_t i = 0; i < made.size() / sizeof(float); ++i) {
    double value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    const float near = float(value);
    std::memcpy(made.data() + i * sizeof near, &near, sizeof near);
  }
  return made;
}

// A block is 32 codes of a sign, two bits of exponent and one of fraction, the even one in the low bits of a byte, times
// 2^(scale - 127) (Rouhani et al., 2023: "Microscaling Data Formats for Deep Learning").
std::vector<std::byte> expanded(std::span<const std::byte> blocks, std::span<const std::byte> scales) {
  constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  using Pair = std::array<std::byte, 4>;      // two codes of a byte in bf16
  std::array<std::vector<Pair>, 256> tables;  // by scale: all bytes
  const auto table_of = [&](std::byte scale) -> const std::vector<Pair>& {
    std::vector<Pair>& table = tables[size_t(scale)];
    for (unsigned codes = 0; table.size() < 256; ++codes) {
      Pair& pair = table.emplace_back();
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned code = codes >> (4 * half) & 15u;
        const float value = std::ldexp(kValues[code & 7u], int(scale) - 127);
        store_number(DType::kBf16, &pair[2 * half], double(code & 8u ? -value : value));
      }
    }
    return table;
  };
  auto made = make_vector<std::byte>(blocks.size() * sizeof(Pair), "a tensor of MXFP4 as bf16");
  for (size_t block = 0; block < scales.size(); ++block) {
    const std::vector<Pair>& table = table_of(scales[block]);
    for (size_t i = block * kBlockBytes; i < (block + 1) * kBlockBytes; ++i)
      std::memcpy(&made[i * sizeof(Pair)], &table[size_t(blocks[i])], sizeof(Pair));
  }
  return made;
}

}  // namespace

Checkpoint::Checkpoint(const std::string& folder) : folder_(folder) {
  namespace fs = std::filesystem;
  if (!is_folder(folder))
    fail(ErrorCode::kIo, "[{}] is not a folder; a model is the folder that save_pretrained writes", folder);
  const std::string single = fs::path(folder) / kSingleFile, index = fs::path(folder) / kIndexFile;
  if (path_exists(single)) {
    files_.emplace_back(single);
    for (const auto& [name, entry] : files_[0].tensors()) file_of_[name] = 0;
  } else if (path_exists(index)) {
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

bool Checkpoint::is_float(const std::string& name) const {
  const std::optional<DType> type = entry(name).dtype;
  return is_rounded(name) || is_mxfp4(name) || (type && is_wide_float(*type));
}

bool Checkpoint::same(const std::string& a, const std::string& b) const {
  if (entry(a).type != entry(b).type || shape(a) != shape(b)) return false;
  const auto left = file_with(a).bytes(a), right = file_with(b).bytes(b);
  const bool same = std::memcmp(left.data(), right.data(), left.size()) == 0;
  file_with(a).require_unchanged();
  file_with(b).require_unchanged();
  return same;
}

bool Checkpoint::is_rounded(const std::string& name) const {
  return entry(name).type == "F64";
}

bool Checkpoint::is_mxfp4(const std::string& name) const {
  if (!name.ends_with(kBlocks) || !has(scales_of(name))) return false;
  const TensorEntry &blocks = entry(name), &scales = entry(scales_of(name));
  std::vector<int64_t> shape = scales.shape;
  shape.push_back(kBlockBytes);
  return blocks.type == "U8" && scales.type == "U8" && blocks.shape == shape;
}

std::vector<int64_t> Checkpoint::shape(const std::string& name) const {
  std::vector<int64_t> shape = entry(name).shape;
  if (!is_mxfp4(name)) return shape;
  shape.pop_back();
  shape.back() *= 2 * kBlockBytes;
  return shape;
}

DType Checkpoint::dtype(const std::string& name) const {
  if (is_rounded(name)) return DType::kF32;
  if (is_mxfp4(name)) return DType::kBf16;
  const TensorEntry& found = entry(name);
  if (!found.dtype || !is_wide_float(*found.dtype))
    fail(ErrorCode::kUnsupported, "[{}] tensor {} holds {}; a weight must be F32, F16, BF16 or F64",
         file_with(name).path(), brief(name), found.type);
  return *found.dtype;
}

TensorView Checkpoint::weight(const std::string& name) const {
  const Safetensors& file = file_with(name);
  const DType type = dtype(name);
  if (!is_rounded(name) && !is_mxfp4(name)) return file.view(name);
  return {name, type, shape(name), converted(name), file.path()};
}

std::span<const std::byte> Checkpoint::converted(const std::string& name) const {
  auto [place, is_new] = converted_.try_emplace(name);
  if (is_new && is_rounded(name)) place->second = rounded(file_with(name).bytes(name));
  if (is_new && is_mxfp4(name))
    place->second = expanded(file_with(name).bytes(name), file_with(scales_of(name)).bytes(scales_of(name)));
  return place->second;
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
  for (const Safetensors& file : files_) file.require_unchanged();
  return digest_of(std::vector<std::string_view>(parts.begin(), parts.end()));
}

void Checkpoint::forget(const std::string& name) {
  auto found = file_of_.find(name);
  if (found == file_of_.end()) return;
  files_[found->second].forget(name);
  converted_.erase(name);
}

}  // namespace heddle
