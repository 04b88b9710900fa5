// Files of torch.save with a dict of tensors (pytorch_model.bin): a zip with a pickle and storages, or the form of torch
// before 1.6, a row of pickles and then the storages. The pickles are read, never run (hf/pickle.h).
#pragma once

#include "heddle/model/hf/tensor_table.h"

namespace heddle {

// Throws Error where the bytes have another CRC-32, unless that is 0, which stands for none.
void require_checksum(std::span<const std::byte> bytes, uint32_t checksum, const std::string& path);

// The tensors of a file whose content is `bytes`. Every one lies inside. Checks the sum of its description, but not those of
// the tensors. Messages name it `path`. Throws Error.
TensorTable parse_torch_file(std::span<const std::byte> bytes, const std::string& path);

}  // namespace heddle
