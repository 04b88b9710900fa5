#include "heddle/model/hf/caller_tensors.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/base/memory.h"

namespace heddle {
namespace {

size_t elements_of(const CallerTensor& tensor) {
  size_t count = 1;
  for (const int64_t size : tensor.shape) count *= size_t(size);
  return count;
}

// Bytes from the first element to the end of the last one.
size_t extent_of(const CallerTensor& tensor) {
  if (elements_of(tensor) == 0) return 0;
  int64_t last = 0;
  for (size_t d = 0; d < tensor.strides.size(); ++d) last += (tensor.shape[d] - 1) * tensor.strides[d];
  const size_t count = tensor.strides.empty() ? elements_of(tensor) : size_t(last) + 1;
  return count * size_t(size_of(tensor.dtype));
}

// Drops strides that say no more than the shape.
void take_dense(CallerTensor& tensor) {
  int64_t dense = 1;
  for (size_t d = tensor.strides.size(); d-- > 0; dense *= tensor.shape[d])
    if (tensor.shape[d] != 1 && tensor.strides[d] != dense) return;
  tensor.strides.clear();
}

}  // namespace

CallerTensors::CallerTensors(std::vector<CallerTensor> given, std::string path) : path_(std::move(path)) {
  std::map<std::tuple<const std::byte*, DType, std::vector<int64_t>, std::vector<int64_t>>, std::string>
      by_memory;
  for (CallerTensor& tensor : given) {
    const std::string name = tensor.name;
    take_dense(tensor);
    const auto memory = std::tuple(tensor.data, tensor.dtype, tensor.shape, tensor.strides);
    same_memory_[name] = by_memory.try_emplace(memory, name).first->second;
    TensorEntry entry = entry_of_type(info_of(tensor.dtype).safetensors);
    entry.shape = tensor.shape;
    entry.size = elements_of(tensor) * size_t(size_of(tensor.dtype));
    entries_[name] = std::move(entry);
    require(given_.emplace(name, std::move(tensor)).second, "[{}] {} is given twice", path_, brief(name));
  }
}

const CallerTensor& CallerTensors::at(const std::string& name) const {
  const auto found = given_.find(name);
  if (found == given_.end()) fail(ErrorCode::kIo, "[{}] there is no tensor {}", path_, brief(name));
  return found->second;
}

TensorView CallerTensors::view(const std::string& name) const {
  const CallerTensor& tensor = at(name);
  return {name, tensor.dtype, tensor.shape, bytes(name), path_};
}

std::span<const std::byte> CallerTensors::bytes(const std::string& name) const {
  require_unchanged();
  const CallerTensor& tensor = at(name);
  const TensorEntry& entry = entries_.at(name);
  const bool aligned = reinterpret_cast<size_t>(tensor.data) % size_t(size_of(tensor.dtype)) == 0;
  if (!tensor.space && tensor.strides.empty() && aligned) return {tensor.data, entry.size};
  auto [copy, is_new] = copies_.try_emplace(same_memory_.at(name));
  if (!is_new) return copy->second;
  try {
    // The tensor as it lies; of a device, in the host's memory.
    std::vector<std::byte> near;
    std::span<const std::byte> lying{tensor.data, extent_of(tensor)};
    if (tensor.space) {
      near = make_vector<std::byte>(lying.size(), "the tensor " + brief(name) + " of a device");
      copy_from(tensor.space, near.data(), lying.data(), near.size());
      lying = near;
    }
    if (tensor.space && tensor.strides.empty()) return copy->second = std::move(near);
    auto rows = make_vector<std::byte>(entry.size, "the tensor " + brief(name) + " row after row");
    if (tensor.strides.empty()) {
      std::ranges::copy(lying, rows.begin());
    } else {
      TensorEntry strided = entry;
      strided.strides = tensor.strides;
      copy_rows(lying.data(), strided, rows);
    }
    return copy->second = std::move(rows);
  } catch (...) {
    copies_.erase(copy);
    throw;
  }
}

void CallerTensors::copy_part(const std::string& name, size_t begin, std::span<std::byte> to) const {
  const CallerTensor& tensor = at(name);
  if (!tensor.space || !tensor.strides.empty()) return TensorSource::copy_part(name, begin, to);
  require_unchanged();
  copy_from(tensor.space, to.data(), tensor.data + begin, to.size());
}

const std::byte* CallerTensors::far(const std::string& name, const MemorySpace& space) const {
  require_unchanged();
  const CallerTensor& tensor = at(name);
  const bool aligned = reinterpret_cast<size_t>(tensor.data) % size_t(size_of(tensor.dtype)) == 0;
  return tensor.space == &space && tensor.strides.empty() && aligned ? tensor.data : nullptr;
}

void CallerTensors::require_unchanged() const {
  if (closed_)
    fail(ErrorCode::kInvalidArgument, "[{}] they were read when the model was made; give them again", path_);
}

void CallerTensors::forget(const std::string& name) {
  if (const auto found = same_memory_.find(name); found != same_memory_.end()) copies_.erase(found->second);
}

}  // namespace heddle
