#include "heddle/model/hf/torch_file.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "heddle/base/crc32.h"
#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/base/placeholder.h"
#include "heddle/model/hf/pickle.h"
#include "heddle/model/hf/zip.h"

namespace heddle {
namespace {

constexpr std::string_view kPickle = "/data.pkl";
// The first pickle of the older form: the number 0x1950a86a20f9469cfc6c.
constexpr std::string_view kOldMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
constexpr std::string_view kTarMagic = "ustar";
constexpr size_t kTarMagicAt = 257;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Storage {
  size_t begin = 0, size = 0;  // bytes of the file
};

// Where a tensor lies in its storage, and whether row after row.
TensorEntry entry_of(const PickledTensor& tensor, const Storage& storage, const std::string& path) {
  const auto require = [&](bool ok, const std::string& what) {
    if (!ok) fail(ErrorCode::kIo, "[{}] tensor {} {}", path, brief(tensor.name), what);
  };
  TensorEntry entry = entry_of_type(tensor.type);
  const int64_t bytes = entry.bits / 8;
  require(tensor.storage_elems >= 0 && uint64_t(tensor.storage_elems) == storage.size / uint64_t(bytes),
          fmt::format("has a storage of {} elements; the file has {} bytes of it", tensor.storage_elems,
                      storage.size));
  require(tensor.shape.size() == tensor.strides.size(), "has not as many strides as dimensions");
  int64_t elems = 1, last = tensor.offset;
  bool in_rows = true, overflow = tensor.offset < 0, none = false;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    const int64_t size = tensor.shape[d], stride = tensor.strides[d];
    int64_t step = 0;
    none |= size == 0;
    in_rows &= size == 1 || stride == elems;
    overflow |= size < 0 || stride < 0 || __builtin_mul_overflow(elems, size, &elems) ||
                __builtin_mul_overflow(std::max<int64_t>(size - 1, 0), stride, &step) ||
                __builtin_add_overflow(last, step, &last);
  }
  if (none) elems = 0;
  require(
      !overflow && tensor.offset <= tensor.storage_elems &&
          (none || (elems <= tensor.storage_elems && last < tensor.storage_elems)),
      fmt::format("has the shape {}, strides {} and offset {}; its storage has {} elements",
                  shape_text(tensor.shape), shape_text(tensor.strides), tensor.offset, tensor.storage_elems));
  entry.shape = tensor.shape;
  if (!in_rows && !none) entry.strides = tensor.strides;
  entry.begin = storage.begin + size_t(tensor.offset * bytes);
  entry.size = size_t(elems * bytes);
  return entry;
}

TensorTable table_of(const PickledTensors& pickled, const std::map<std::string, Storage>& storages,
                     const std::string& path) {
  TensorTable table;
  for (const PickledTensor& tensor : pickled.tensors) {
    const auto storage = storages.find(tensor.storage);
    if (storage == storages.end())
      fail(ErrorCode::kIo, "[{}] tensor {} lies in storage {}, which the file does not have", path,
           brief(tensor.name), brief(tensor.storage));
    table.tensors[tensor.name] = entry_of(tensor, storage->second, path);
  }
  return table;
}

TensorTable parse_zip(std::span<const std::byte> bytes, const std::string& path) {
  const std::map<std::string, ZipEntry> files = read_zip(bytes, path);
  const auto is_pickle = [](const auto& file) { return file.first.ends_with(kPickle); };
  const auto found = std::ranges::find_if(files, is_pickle);
  if (found == files.end() || std::ranges::count_if(files, is_pickle) != 1)
    fail(ErrorCode::kIo, "[{}] is a zip file without one data.pkl, so torch.save did not write it", path);
  const std::string root = found->first.substr(0, found->first.size() - kPickle.size());
  const auto content = [&](const ZipEntry& file) {
    const auto inside = bytes.subspan(file.begin, file.size);
    require_checksum(inside, file.checksum, path);
    return inside;
  };
  if (const auto order = files.find(root + "/byteorder"); order != files.end())
    if (text_of(content(order->second)) != "little")
      fail(ErrorCode::kUnsupported, "[{}] has the byte order {}; little is read", path,
           brief(std::string(text_of(content(order->second)))));
  const PickledTensors pickled = read_pickled_tensors(content(found->second), path);
  std::map<std::string, Storage> storages;
  std::vector<SummedBytes> sums;
  for (const auto& [name, file] : files)
    if (const std::string folder = root + "/data/"; name.starts_with(folder)) {
      storages[name.substr(folder.size())] = {file.begin, file.size};
      sums.push_back({file.begin, file.size, file.checksum});
    }
  TensorTable table = table_of(pickled, storages, path);
  std::ranges::sort(sums, {}, &SummedBytes::begin);
  table.sums = std::move(sums);
  return table;
}

// Pickles: the magic number, the version, the sizes of C's types, the tensors, the keys of the storages. Then come the storages,
// each after its number of elements.
TensorTable parse_old(std::span<const std::byte> bytes, const std::string& path) {
  size_t at = kOldMagic.size();
  at += skip_pickle(bytes.subspan(at), path);
  at += skip_pickle(bytes.subspan(at), path);
  const PickledTensors pickled = read_pickled_tensors(bytes.subspan(at), path);
  at += pickled.size;
  const PickledTexts keys = read_pickled_texts(bytes.subspan(at), path);
  at += keys.size;
  std::map<std::string_view, const PickledTensor*> of;
  for (const PickledTensor& tensor : pickled.tensors) of[tensor.storage] = &tensor;
  std::map<std::string, Storage> storages;
  for (const std::string& key : keys.texts) {
    const auto user = of.find(key);
    if (user == of.end()) fail(ErrorCode::kIo, "[{}] no tensor says what storage {} holds", path, brief(key));
    uint64_t elems = 0, size = 0;
    const size_t left = bytes.size() - at;
    for (size_t i = 0; i < sizeof elems && left >= sizeof elems; ++i)
      elems |= uint64_t(bytes[at + i]) << (8 * i);
    const auto width = uint64_t(entry_of_type(user->second->type).bits / 8);
    if (left < sizeof elems || __builtin_mul_overflow(elems, width, &size) || size > left - sizeof elems)
      fail(ErrorCode::kIo,
           "[{}] storage {} of {} elements lies at byte {}; the file has {} (was it cut short?)", path,
           brief(key), elems, at, bytes.size());
    at += sizeof elems;
    storages[key] = {at, size_t(size)};
    at += size_t(size);
  }
  return table_of(pickled, storages, path);
}

}  // namespace

void require_checksum(std::span<const std::byte> bytes, uint32_t checksum, const std::string& path) {
  if (checksum == 0) return;  // as torch writes where set_crc32_options(False) was called
  if (const uint32_t sum = crc32_of(bytes); sum != checksum)
    fail(ErrorCode::kIo,
         "[{}] is damaged: a part of {} bytes has the checksum {:08x}, and the file says {:08x}; download or "
         "save "
         "it again",
         path, bytes.size(), sum, checksum);
}

TensorTable parse_torch_file(std::span<const std::byte> bytes, const std::string& path) {
  const std::string_view text = text_of(bytes);
  refuse_placeholder(path, text.substr(0, 64));
  if (looks_like_zip(bytes)) return parse_zip(bytes, path);
  if (text.starts_with(kOldMagic)) return parse_old(bytes, path);
  if (text.size() > kTarMagicAt && text.substr(kTarMagicAt).starts_with(kTarMagic))
    fail(ErrorCode::kUnsupported,
         "[{}] is a tar file, as torch before 0.2 wrote them; load it with torch and save it again", path);
  fail(ErrorCode::kIo, "[{}] is no file of torch.save: it begins neither as a zip file nor as its older form",
       path);
}

}  // namespace heddle
