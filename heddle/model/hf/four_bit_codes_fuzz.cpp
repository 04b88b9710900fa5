// Any safetensors file is refused with an Error, or each weight in 4-bit floats that it holds has as many values as its shape says.
#include <cstdint>
#include <span>
#include <string>

#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/model/hf/four_bit_codes.h"
#include "heddle/model/hf/safetensors.h"

namespace {

class Memory : public heddle::TensorSource {
 public:
  explicit Memory(std::span<const std::byte> file)
      : file_(file), table_(heddle::parse_safetensors_header(file, "fuzz")) {}

  const std::string& path() const override { return path_; }
  const std::map<std::string, heddle::TensorEntry>& tensors() const override { return table_.tensors; }
  heddle::TensorView view(const std::string& name) const override {
    return {name, heddle::DType::kF32, {}, bytes(name), path_};
  }
  std::span<const std::byte> bytes(const std::string& name) const override {
    return file_.subspan(table_.tensors.at(name).begin, table_.tensors.at(name).size);
  }
  void require_undamaged(const std::string&) const override {}
  void require_unchanged() const override {}
  void forget(const std::string&) override {}

 private:
  std::string path_ = "fuzz";
  std::span<const std::byte> file_;
  heddle::TensorTable table_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    Memory file(std::as_bytes(std::span(data, size)));
    std::vector<std::string> names;
    for (const auto& [name, entry] : file.tensors()) names.push_back(name);
    const auto find = [&](const std::string& name) {
      const auto found = file.tensors().find(name);
      return found == file.tensors().end() ? heddle::StoredTensor{}
                                           : heddle::StoredTensor{name, &file, &found->second};
    };
    for (const auto compose : {heddle::compose_nvfp4, heddle::compose_mxfp4, heddle::compose_bitsandbytes})
      for (const auto& [name, weight] : compose(names, find)) {
        size_t bytes = size_t(size_of(weight.dtype));
        for (const int64_t dim : weight.shape) bytes *= size_t(dim);
        HEDDLE_CHECK(weight.floats().size() == bytes);
      }
  } catch (const heddle::Error&) {  // which says what is wrong
  }
  return 0;
}
