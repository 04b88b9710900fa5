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
#include "heddle/model/hf/tensor_table.h"

namespace heddle {

class TensorFile {
 public:
  // A file named *.safetensors is one; others are files of torch.save.
  explicit TensorFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, TensorEntry>& tensors() const { return table_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return table_.metadata; }
  void require_unchanged() const { file_.require_unchanged(); }

  // Throws when the name is missing, heddle does not support its element type, or its bytes are damaged.
  TensorView view(const std::string& name) const;
  // Reads all bytes of a tensor's storage once, if the file has a checksum of them. Throws Error where it is another.
  void require_undamaged(const std::string& name) const;
  // The bytes of a tensor of any type, row after row. They are not checked.
  std::span<const std::byte> bytes(const std::string& name) const;
  // Gives the memory of a tensor back to the system; it is read again when touched. Views of a tensor that is
  // a copy become invalid. Throws Error when the file changed, so that what was read is wrong.
  void forget(const std::string& name);

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
