// Values of tensors in memory of the host, for references of ops.
#pragma once

#include "heddle/ir/op.h"

namespace heddle::python {

class HostValues : public Values {
 public:
  std::vector<double> read(const Tensor& tensor) const override;
  std::vector<double> read(const Weight& weight) const override;
  void write(const Tensor& tensor, std::span<const double> values) override;
  std::byte* bytes(u32 buffer) override;
};

}  // namespace heddle::python
