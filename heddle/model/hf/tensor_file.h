// One file of tensors by name, mapped and not copied: safetensors, or what torch.save writes. Opening a file checks all
// of its description, so every view lies inside the file and has the size that its shape gives.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/file.h"
#include "heddle/model/hf/tensor_source.h"

namespace heddle {

class TensorFile : public TensorSource {
 public:
  // A file named *.safetensors is one; others are files of torch.save.
  explicit TensorFile(const std::string& path);

  const std::string& path() const override { return file_.path(); }
  const std::map<std::string, TensorEntry>& tensors() const override { return table_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return table_.metadata; }
  void require_unchanged() const override { file_.require_unchanged(); }
  TensorView view(const std::string& name) const override;
  void require_undamaged(const std::string& name) const override;
  std::span<const std::byte> bytes(const std::string& name) const override;
  // Memory of the file is read again when touched; only views of a tensor that is a copy become invalid. Throws Error when
  // the file changed, so that what was read is wrong.
  void forget(const std::string& name) override;

 private:
  std::span<const std::byte> in_file(const TensorEntry& entry) const;

  MappedFile file_;
  TensorTable table_;
  mutable std::set<size_t> undamaged_;  // parts of table_.sums that were checked
  // Tensors that are not aligned in the file, as those of old writers, or that do not lie row after row. Each is copied when
  // it is first asked for.
  mutable std::map<std::string, std::vector<std::byte>> copies_;
};

}  // namespace heddle
