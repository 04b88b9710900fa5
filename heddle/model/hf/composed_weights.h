// Weights that a checkpoint stores as several tensors each, in formats whose values are expanded at load: GPTQ, AWQ, integers of
// 8 bits with scales, NVFP4, MXFP4, bitsandbytes. What the formats are is in column_codes.h, row_codes.h and four_bit_codes.h.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "heddle/model/hf/composed_weight.h"
#include "heddle/model/hf/quantisation.h"
#include "heddle/model/hf/tensor_source.h"

namespace heddle {

// Throws Error(kIo) that names file and tensor where parts are missing or do not fit.
ComposedByName compose_weights(const CodeFormat& format, const std::vector<std::string>& names,
                               const FindStored& find);

class ComposedWeights : public TensorSource {
 public:
  explicit ComposedWeights(ComposedByName weights);

  const std::vector<StoredTensor>& parts(const std::string& name) const { return weights_.at(name).parts; }

  const std::string& path() const override { return path_; }
  const std::map<std::string, TensorEntry>& tensors() const override { return tensors_; }
  TensorView view(const std::string& name) const override;
  std::span<const std::byte> bytes(const std::string& name) const override { return codes_of(name).bytes(); }
  void require_undamaged(const std::string& name) const override {
    codes_of(name).file->require_undamaged(codes_of(name).name);
  }
  void require_unchanged() const override {}  // the files say it themselves
  std::vector<std::byte> floats(const std::string& name) const override;
  StoredCoding coding(const std::string& name) const override;
  void forget(const std::string& name) override;

 private:
  const StoredTensor& codes_of(const std::string& name) const { return weights_.at(name).parts.front(); }

  std::string path_;
  ComposedByName weights_;
  std::map<std::string, TensorEntry> tensors_;
};

}  // namespace heddle
