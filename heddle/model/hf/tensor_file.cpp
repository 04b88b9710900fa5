#include "heddle/model/hf/tensor_file.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/base/memory.h"
#include "heddle/model/hf/safetensors.h"
#include "heddle/model/hf/torch_file.h"

namespace heddle {

TensorFile::TensorFile(const std::string& path)
    : file_(path), table_(file_.read([&](std::string_view text) {
        const auto bytes = std::as_bytes(std::span(text));
        return path.ends_with(".safetensors") ? parse_safetensors_header(bytes, path)
                                              : parse_torch_file(bytes, path);
      })) {}

TensorView TensorFile::view(const std::string& name) const {
  auto found = table_.tensors.find(name);
  if (found == table_.tensors.end()) fail(ErrorCode::kIo, "[{}] has no tensor {}", path(), brief(name));
  const TensorEntry& entry = found->second;
  if (!entry.dtype)
    fail(ErrorCode::kUnsupported, "[{}] tensor {} holds {}; heddle has no such type", path(), brief(name),
         entry.type);
  require_undamaged(name);
  TensorView view{name, *entry.dtype, entry.shape, bytes(name), path()};
  if (entry.begin % size_t(size_of(*entry.dtype)) == 0 || !entry.strides.empty()) return view;
  auto [copy, is_new] = copies_.try_emplace(name);
  if (is_new) {
    copy->second = make_vector<std::byte>(view.data.size(), "the unaligned tensor " + brief(name));
    std::ranges::copy(view.data, copy->second.begin());
  }
  view.data = copy->second;
  return view;
}

void TensorFile::require_undamaged(const std::string& name) const {
  const TensorEntry& entry = table_.tensors.at(name);
  const auto after = std::ranges::upper_bound(table_.sums, entry.begin, {}, &SummedBytes::begin);
  if (after == table_.sums.begin()) return;
  const SummedBytes& part = *std::prev(after);
  if (!undamaged_.insert(part.begin).second) return;
  try {
    require_checksum(file_.bytes().subspan(part.begin, part.size), part.checksum, path());
  } catch (...) {
    undamaged_.erase(part.begin);
    file_.require_unchanged();  // a file that changed is the better reason
    throw;
  }
}

// From its first element on.
std::span<const std::byte> TensorFile::in_file(const TensorEntry& entry) const {
  return file_.bytes().subspan(entry.begin, entry.size);
}

std::span<const std::byte> TensorFile::bytes(const std::string& name) const {
  const TensorEntry& entry = table_.tensors.at(name);
  if (entry.strides.empty()) return in_file(entry);
  auto [copy, is_new] = copies_.try_emplace(name);
  if (is_new) {
    copy->second = make_vector<std::byte>(entry.size, "the tensor " + brief(name) + " row after row");
    copy_rows(file_.bytes().data() + entry.begin, entry, copy->second);
  }
  return copy->second;
}

void TensorFile::forget(const std::string& name) {
  auto found = table_.tensors.find(name);
  if (found == table_.tensors.end()) return;
  file_.require_unchanged();
  if (found->second.strides.empty()) file_.forget(found->second.begin, found->second.size);
  copies_.erase(name);
}

}  // namespace heddle
