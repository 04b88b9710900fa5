// One safetensors file: tensors by name, mapped and not copied, and a writer. The format: 8 bytes with the
// length of the header, the header as JSON (name -> type, shape, byte range), then the bytes of all tensors
// without gaps. Opening a file checks all of it, so every view lies inside the file and has the size that its
// shape gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/dtype.h"
#include "heddle/base/file.h"

namespace heddle {

// A tensor in row-major order. `data` is aligned for its element type.
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  std::string file;
};

// A tensor as the file's header describes it.
struct TensorEntry {
  std::string type;            // as the file writes it: "BF16"
  std::optional<DType> dtype;  // nothing for types that heddle does not support, such as F64
  std::vector<int64_t> shape;
  size_t begin = 0, size = 0;  // bytes in the file
};

struct SafetensorsHeader {
  std::map<std::string, TensorEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// Reads and checks the header of a file whose content is `bytes`. Messages name it `path`.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> bytes, const std::string& path);

class Safetensors {
 public:
  explicit Safetensors(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, TensorEntry>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  void require_unchanged() const { file_.require_unchanged(); }

  // Throws when the name is missing or heddle does not support its element type.
  TensorView view(const std::string& name) const;
  // The bytes of a tensor of any type, as in the file.
  std::span<const std::byte> bytes(const std::string& name) const;
  // Gives the memory of a tensor back to the system; it is read again when touched. Views of a tensor that is
  // unaligned in the file become invalid. Throws Error when the file changed, so that what was read is wrong.
  void forget(const std::string& name);

 private:
  MappedFile file_;
  SafetensorsHeader header_;
  // Old writers start the data at any offset; such tensors are copied once.
  std::map<std::string, std::vector<std::byte>> aligned_copies_;
};

// Writes `tensors` (their `file` is ignored) so that a reader sees the whole file or none.
void write_safetensors(const std::string& path, std::vector<TensorView> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// Text such as "[40, 12]".
std::string shape_text(std::span<const int64_t> shape);

}  // namespace heddle
