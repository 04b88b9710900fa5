// The tensors of a GGUF file as transformers names and orders them. Those in blocks of codes are expanded to bf16, one at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/base/gguf.h"
#include "heddle/model/hf/gguf_config.h"
#include "heddle/model/hf/gguf_names.h"
#include "heddle/model/hf/tensor_source.h"

namespace heddle {

class GgufFile : public TensorSource {
 public:
  explicit GgufFile(Gguf file);

  // The text of the config.json that the metadata stand for.
  std::string config() const { return gguf_config(file_); }

  const std::string& path() const override { return file_.path(); }
  const std::map<std::string, TensorEntry>& tensors() const override { return tensors_; }
  TensorView view(const std::string& name) const override;
  std::span<const std::byte> bytes(const std::string& name) const override;
  // In the order of the file, which tells it from others too.
  void copy_part(const std::string& name, size_t begin, std::span<std::byte> to) const override;
  std::vector<std::byte> floats(const std::string& name) const override;
  StoredCoding coding(const std::string& name) const override;
  SourceCodes codes(const std::string& name) const override;
  void require_undamaged(const std::string&) const override {}  // the format has no checksums
  void require_unchanged() const override { file_.require_unchanged(); }
  void forget(const std::string& name) override;

 private:
  Gguf file_;
  std::map<std::string, GgufPart> parts_;
  std::map<std::string, TensorEntry> tensors_;
  mutable std::map<std::string, std::vector<std::byte>>
      copies_;  // tensors whose numbers differ from the file's
};

}  // namespace heddle
