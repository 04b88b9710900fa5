#include "heddle/model/hf/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/ranges.h>

#include "heddle/base/digest.h"
#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/integer.h"
#include "heddle/base/json.h"
#include "heddle/model/hf/expansion.h"
#include "heddle/model/hf/gguf_file.h"
#include "heddle/model/hf/hub_cache.h"
#include "heddle/model/hf/tensor_file.h"

namespace heddle {
namespace {

// Names of the weights, the preferred ones first, as in transformers.
struct WeightFiles {
  const char *single, *index;
};
constexpr WeightFiles kWeightFiles[] = {{"model.safetensors", "model.safetensors.index.json"},
                                        {"pytorch_model.bin", "pytorch_model.bin.index.json"}};

// The index names files in its own folder and nowhere else.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string("/\\\0", 3)) == name.npos;
}

constexpr std::string_view kBlocks = "_blocks", kPacked = "_packed";
constexpr int64_t kPackedInAWord = 8;

// The name of a weight whose stored name ends with "_packed"; also taken as it is.
std::string weight_of(const std::string& name) {
  return name.ends_with(kPacked) ? name.substr(0, name.size() - kPacked.size()) : name;
}

// The scales of a row that packed integers may have: "1 or columns / 128".
std::string scales_text(const CodeFormat& format) {
  std::vector<std::string> texts;
  for (const Packing& packing : format.packings) {
    std::string text = packing.group > 0 ? fmt::format("columns / {}", packing.group) : "1";
    if (std::ranges::count(texts, text) == 0) texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, " or "));
}

}  // namespace

Checkpoint::Checkpoint(const std::string& folder) : folder_(folder) {
  namespace fs = std::filesystem;
  if (is_gguf(folder)) {
    const auto file = std::make_shared<GgufFile>(Gguf(folder));
    config_ = file->config();
    take_all(file);
    sort_names();
    return;
  }
  if (!is_folder(folder))
    fail(ErrorCode::kIo, "[{}] is not a folder; a model is the folder that save_pretrained writes", folder);
  for (const WeightFiles& names : kWeightFiles) {
    const std::string single = fs::path(folder) / names.single, index = fs::path(folder) / names.index;
    const bool has_one = path_exists(single);
    if (!has_one && !path_exists(index)) continue;
    if (has_one)
      take_all(std::make_shared<TensorFile>(single));
    else
      open_shards(index);
    sort_names();
    return;
  }
  fail_without_weights();
}

Checkpoint::Checkpoint(std::shared_ptr<TensorSource> tensors, std::string config)
    : folder_(tensors->path()), config_(std::move(config)) {
  take_all(std::move(tensors));
  sort_names();
}

// All of one file.
void Checkpoint::take_all(std::shared_ptr<TensorSource> file) {
  places_.reserve(file->tensors().size());
  for (const auto& [name, entry] : file->tensors()) places_[name].entry = &entry;
  files_.push_back(std::move(file));
}

void Checkpoint::fail_without_weights() const {
  const std::vector<std::string> names = names_in(folder_);
  for (const WeightFiles& weights : kWeightFiles) {
    const std::string end = std::filesystem::path(weights.single).extension();
    const auto is_shard = [&](const std::string& name) {
      return name.ends_with(end) && name.find("-of-") != name.npos;
    };
    if (const auto shard = std::ranges::find_if(names, is_shard); shard != names.end())
      fail(ErrorCode::kIo,
           "[{}] holds {} but no {}, which says which tensors are in which file; `{}` brings all", folder_,
           *shard, weights.index, download_command(folder_));
  }
  fail(ErrorCode::kIo, "[{}] holds no weights: neither {} nor {} nor an index of shards; `{}` brings them",
       folder_, kWeightFiles[0].single, kWeightFiles[1].single, download_command(folder_));
}

void Checkpoint::sort_names() {
  std::vector<std::pair<std::string_view, const TensorEntry*>> all;
  all.reserve(places_.size());
  for (const auto& [name, place] : places_) all.emplace_back(name, place.entry);
  std::ranges::sort(all);
  names_.reserve(all.size()), entries_.reserve(all.size());
  for (const auto& [name, entry] : all) names_.emplace_back(name), entries_.push_back(entry);
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
    number_of.try_emplace(value.as_string(), number_of.size());
  }
  std::vector<std::string> paths(number_of.size());
  size_t gone = 0;
  for (const auto& [name, number] : number_of) {
    paths[number] = std::filesystem::path(folder_) / name;
    gone += path_exists(paths[number]) ? 0 : 1;
  }
  for (const std::string& path : paths)
    if (!path_exists(path))
      fail(ErrorCode::kIo,
           "[{}] is missing; {} names it, and {} of its {} files are not here; `{}` brings the rest", path,
           std::filesystem::path(index_path).filename().string(), gone, paths.size(),
           download_command(folder_));

  for (const std::string& path : paths) files_.push_back(std::make_shared<TensorFile>(path));
  places_.reserve(files->size());
  for (const auto& [name, value] : files->members()) {
    const size_t number = number_of.at(value.as_string());
    const auto found = files_[number]->tensors().find(name);
    if (found == files_[number]->tensors().end())
      misplaced_[name] =
          fmt::format("[{}] has no tensor {}, which the index says is there; download it again",
                      paths[number], brief(name));
    else
      places_[found->first] = {.file = number, .entry = &found->second};
  }
  // A shard may hold more than the index names, which transformers reads too.
  std::vector<std::string> twice;
  for (size_t number = 0; number < files_.size(); ++number)
    for (const auto& [name, entry] : files_[number]->tensors()) {
      const auto [place, is_new] = places_.try_emplace(name, Place{number, &entry, false, {}});
      if (is_new || place->second.listed) continue;
      misplaced_[name] = fmt::format("[{}] and {} both hold the tensor {}; the index must say which counts",
                                     paths[number], paths[place->second.file], brief(name));
      twice.push_back(name);
    }
  for (const std::string& name : twice) places_.erase(name);
}

size_t Checkpoint::bytes() const {
  size_t sum = 0;
  for (const auto& [name, place] : places_) sum += place.entry->size;
  return sum;
}

const Checkpoint::Place& Checkpoint::place_of(const std::string& name) const {
  const auto found = places_.find(name);
  if (found != places_.end()) return found->second;
  if (const auto why = misplaced_.find(name); why != misplaced_.end())
    throw Error(ErrorCode::kIo, why->second);
  fail(ErrorCode::kIo, "[{}] has no tensor {}; is config.json that of another model?", folder_, brief(name));
}

bool Checkpoint::is_float(const std::string& name) const {
  const std::optional<DType> type = entry(name).dtype;
  return is_rounded(name) || entry(name).floats || !scales_of(name).empty() || (type && is_wide_float(*type));
}

bool Checkpoint::same(const std::string& a, const std::string& b) const {
  if (is_changed(a) || is_changed(b)) return false;
  if (entry(a).type != entry(b).type || shape(a) != shape(b)) return false;
  if (&file_with(a) == &file_with(b) && file_with(a).is_one_memory(stored_name(a), stored_name(b)))
    return true;
  const auto left = file_with(a).bytes(stored_name(a)), right = file_with(b).bytes(stored_name(b));
  const bool same = left.data() == right.data() || std::memcmp(left.data(), right.data(), left.size()) == 0;
  file_with(a).require_unchanged();
  file_with(b).require_unchanged();
  return same;
}

bool Checkpoint::is_mxfp4(const std::string& name) const {
  const std::string scales = scales_of(name);
  return !scales.empty() && entry(name).type == "U8";
}

void Checkpoint::set_code_format(const CodeFormat& format) {
  format_ = format;
  compose(format);
  if (format.packings.empty()) return;
  for (const std::string& name : names_)
    if (const std::string weight = weight_of(name); weight != name && !has(weight))
      places_.emplace(packed_.emplace_back(weight), places_.at(name));
}

// Weights of several tensors stand for these, under the names that models use.
void Checkpoint::compose(const CodeFormat& format) {
  const FindStored stored = [this](const std::string& name) {
    const auto found = places_.find(name);
    if (found == places_.end()) return StoredTensor{};
    return StoredTensor{name, files_[found->second.file].get(), found->second.entry};
  };
  ComposedByName weights = compose_weights(format, names_, stored);
  if (weights.empty()) return;
  composed_ = std::make_shared<ComposedWeights>(std::move(weights));
  for (const auto& [name, entry] : composed_->tensors()) {
    if (has(name) && composed_->parts(name).front().name != name)
      fail(ErrorCode::kIo, "[{}] has both {} and {}; a weight must be stored once", composed_->path(), name,
           composed_->parts(name).front().name);
    places_.erase(name);  // its key may lie in the file
    places_[name] = {.file = files_.size(), .entry = &entry};
  }
  files_.push_back(composed_);
}

// A weight that is stored in a code that is no type of the file has another name there.
std::string Checkpoint::stored_name(const std::string& name) const {
  return is_packed(name) ? weight_of(name) + std::string(kPacked) : name;
}

bool Checkpoint::is_packed(const std::string& name) const {
  if (format_.packings.empty() || !has(weight_of(name) + std::string(kPacked))) return false;
  const TensorEntry* weight = find(weight_of(name));
  return !weight || !weight->floats;  // else it is composed
}

Checkpoint::PackedMatrix Checkpoint::packed_matrix(const std::string& name) const {
  const std::string shape_name = weight_of(name) + "_shape";
  const TensorEntry *codes = find(name), *scales = find(weight_of(name) + "_scale"),
                    *shape = find(shape_name);
  if (!codes || !scales || !shape || !shape->dtype || !is_integer(*shape->dtype)) return {};
  if (codes->type != "I32" || codes->shape.size() != 2 || shape->shape != std::vector<int64_t>{2}) return {};
  if (!scales->dtype || !is_wide_float(*scales->dtype)) return {};
  const std::byte* numbers = checked_bytes(shape_name).data();
  const auto rows = int64_t(load_number(*shape->dtype, numbers, 0)),
             cols = int64_t(load_number(*shape->dtype, numbers, 1));
  using Shape = std::vector<int64_t>;
  if (rows < 1 || cols < 1 || codes->shape[0] != rows) return {};
  if (scales->shape.size() != 2 || scales->shape[0] != rows) return {};
  const auto packing = packing_of(format_, cols, codes->shape[1], scales->shape[1]);
  if (!packing || packing->bits != 4) return {};
  const TensorEntry* zeros = find(weight_of(name) + "_zero_point");
  if (zeros &&
      (zeros->type != "I32" || zeros->shape != Shape{ceil_div(rows, kPackedInAWord), scales->shape[1]}))
    return {};
  return {{rows, cols}, packing->group};
}

bool Checkpoint::is_fp8(const std::string& name) const {
  return entry(name).dtype == DType::kF8E4M3 && !scales_of(name).empty();
}

std::string Checkpoint::scales_of(const std::string& name, const TensorEntry& entry) const {
  if (name.ends_with(kBlocks)) {
    std::string scales = name.substr(0, name.size() - kBlocks.size()) + "_scales";
    const TensorEntry* found = entry.type == "U8" ? find(scales) : nullptr;
    if (!found || found->type != "U8") return "";
    std::vector<int64_t> shape = found->shape;
    shape.push_back(kMxfp4BlockBytes);
    return entry.shape == shape ? scales : "";
  }
  if (is_packed(name) && entry.type == "I32")
    return packed_matrix(name).shape.empty() ? "" : weight_of(name) + "_scale";
  if (entry.dtype == DType::kF8E4M3)
    for (const char* end : {"_scale_inv", "_scale"}) {
      std::string scales = name + end;
      if (const TensorEntry* found = find(scales); found && are_fp8_scales(entry, *found, format_))
        return scales;
    }
  return "";
}

std::vector<const TensorEntry*> Checkpoint::parts_beside(const std::string& name) const {
  std::vector<const TensorEntry*> parts;
  if (composed_ && composed_->tensors().contains(name)) {
    for (const StoredTensor& part : composed_->parts(name)) parts.push_back(part.entry);
  } else if (is_packed(name)) {
    for (const char* end : {"_scale", "_shape", "_zero_point"})
      if (const TensorEntry* part = find(weight_of(name) + end)) parts.push_back(part);
  } else if (const std::string scales = scales_of(name); !scales.empty()) {
    parts.push_back(find(scales));
  }
  return parts;
}

std::vector<int64_t> Checkpoint::shape(const std::string& name) const {
  if (is_packed(name)) return packed_matrix(name).shape;
  std::vector<int64_t> shape = entry(name).shape;
  if (!is_mxfp4(name)) return shape;
  shape.pop_back();
  shape.back() *= 2 * kMxfp4BlockBytes;
  return shape;
}

DType Checkpoint::dtype(const std::string& name) const {
  const Place& place = place_of(name);
  if (!place.dtype) place.dtype = find_dtype(name);
  return *place.dtype;
}

DType Checkpoint::find_dtype(const std::string& name) const {
  if (is_rounded(name)) return DType::kF32;
  const TensorEntry& found = entry(name);
  if (found.floats) return *found.floats;
  if (is_mxfp4(name) || is_fp8(name)) return DType::kBf16;
  if (is_packed(name)) {
    if (const std::string scales = scales_of(name); !scales.empty()) return *entry(scales).dtype;
    fail(ErrorCode::kUnsupported,
         "[{}] tensor {} has integers {}, and scales and a shape that do not fit; they must be {} [rows, "
         "columns], {} "
         "[rows, {}] and zeros, if any, {}",
         file_with(name).path(), brief(stored_name(name)), shape_text(found.shape),
         brief(weight_of(name) + "_shape"), brief(weight_of(name) + "_scale"), scales_text(format_),
         brief(weight_of(name) + "_zero_point"));
  }
  if (found.dtype == DType::kF8E4M3)
    fail(ErrorCode::kUnsupported,
         "[{}] tensor {} of {} holds F8_E4M3 without scales that fit; they may be one, one a row or one a "
         "block "
         "of {} x {}, in {}",
         file_with(name).path(), brief(name), shape_text(found.shape), format_.block_rows, format_.block_cols,
         brief(name + "_scale_inv or _scale"));
  if (!found.dtype || !is_wide_float(*found.dtype))
    fail(ErrorCode::kUnsupported, "[{}] tensor {} holds {}; a weight must be F32, F16, BF16 or F64",
         file_with(name).path(), brief(name), found.type);
  return *found.dtype;
}

void Checkpoint::change(const std::string& name, Change change) {
  changes_[name] = std::move(change);
  place_of(name).coding.reset();
}

TensorView Checkpoint::weight(const std::string& name) const {
  const auto change = changes_.find(name);
  if (change == changes_.end()) return unchanged(name);
  auto [place, is_new] = changed_.try_emplace(name);
  if (is_new) {
    place->second = change->second(unchanged(name));
    converted_.erase(name);
  }
  return {name, dtype(name), shape(name), place->second, file_with(name).path()};
}

TensorView Checkpoint::unchanged(const std::string& name) const {
  const TensorSource& file = file_with(name);
  const DType type = dtype(name);
  if (!is_rounded(name) && !entry(name).floats && scales_of(name).empty()) return file.view(name);
  return {name, type, shape(name), converted(name), file.path()};
}

std::optional<TensorView> Checkpoint::far(const std::string& name, const MemorySpace& space) const {
  const TensorEntry& stored = entry(name);
  if (!stored.dtype || !is_wide_float(*stored.dtype) || is_changed(name)) return std::nullopt;
  const std::byte* address = file_with(name).far(name, space);
  if (!address) return std::nullopt;
  return TensorView{name, *stored.dtype, stored.shape, {address, stored.size}, folder_};
}

std::span<const std::byte> Checkpoint::checked_bytes(const std::string& name) const {
  const TensorSource& file = file_with(name);
  const std::string stored = stored_name(name);
  file.require_undamaged(stored);
  return file.bytes(stored);
}

std::span<const std::byte> Checkpoint::converted(const std::string& name) const {
  auto [place, is_new] = converted_.try_emplace(name);
  if (!is_new) return place->second;
  if (is_rounded(name)) return place->second = doubles_as_floats(checked_bytes(name));
  if (entry(name).floats) return place->second = file_with(name).floats(name);
  if (!is_mxfp4(name)) return place->second = codes_as_floats(codes(name));
  return place->second = mxfp4_as_bf16(checked_bytes(name), checked_bytes(scales_of(name)));
}

StoredCoding Checkpoint::coding(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) return {};
  const Place& place = found->second;
  if (!place.coding) {
    place.coding = find_coding(name);
    if (is_changed(name) && place.coding->coding.code != Code::kNone)
      place.coding = {.expanded = "an adapter is merged into them"};
  }
  return *place.coding;
}

StoredCoding Checkpoint::find_coding(const std::string& name) const {
  if (entry(name).floats) return file_with(name).coding(name);
  if (is_mxfp4(name)) return {.expanded = "MXFP4 has no code in memory"};
  if (is_fp8(name)) return {coding_of(entry(name), entry(scales_of(name)), format_)};
  if (!is_packed(name) || scales_of(name).empty()) return {};
  if (has(weight_of(name) + "_zero_point")) return {.expanded = "its integers have zero points"};
  if (dtype(name) != DType::kBf16)
    return {.expanded = fmt::format("its scales are {}", heddle::name(dtype(name)))};
  const PackedMatrix matrix = packed_matrix(name);
  if (matrix.shape[1] % 2 != 0) return {.expanded = "its rows have an odd number of columns"};
  return {{Code::kI4, static_cast<unsigned short>(matrix.group)}};
}

SourceCodes Checkpoint::codes(const std::string& name) const {
  if (entry(name).floats) return file_with(name).codes(name);
  const std::string scales = scales_of(name), zeros = weight_of(name) + "_zero_point";
  if (!is_packed(name))
    return fp8_codes({entry(name), entry(scales), checked_bytes(name), checked_bytes(scales)}, format_);
  const PackedMatrix matrix = packed_matrix(name);
  return packed_codes({.rows = matrix.shape[0],
                       .cols = matrix.shape[1],
                       .group = matrix.group,
                       .codes = entry(name),
                       .scales = entry(scales),
                       .code_bytes = checked_bytes(name),
                       .scale_bytes = checked_bytes(scales),
                       .zero_bytes = has(zeros) ? checked_bytes(zeros) : std::span<const std::byte>()});
}

std::string Checkpoint::fingerprint() const {
  constexpr size_t kSample = 4096;
  std::vector<std::string> parts = {
      config_.empty() ? read_file(std::filesystem::path(folder_) / "config.json") : config_};
  for (const std::string& name : names_) {
    const TensorEntry& entry = this->entry(name);
    parts.push_back(fmt::format("{} {} {}", name, entry.type, shape_text(entry.shape)));
    const size_t size = std::min(entry.size, kSample), last = entry.size - size;
    for (const size_t begin : {size_t{0}, last / 2, last}) {
      std::string& sample = parts.emplace_back(size, '\0');
      file_with(name).copy_part(name, begin, std::as_writable_bytes(std::span(sample)));
    }
  }
  for (const auto& file : files_) file->require_unchanged();
  return digest_of(std::vector<std::string_view>(parts.begin(), parts.end()));
}

void Checkpoint::forget(const std::string& name) {
  const auto found = places_.find(name);
  if (found == places_.end()) return;
  files_[found->second.file]->forget(stored_name(name));
  converted_.erase(name);
  changed_.erase(name);
}

}  // namespace heddle
