// The format safetensors: 8 bytes with the length of the header, the header as JSON (name -> type, shape, byte range), then
// the bytes of all tensors without gaps. A check of headers, and a writer.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "heddle/model/hf/tensor_table.h"

namespace heddle {

// Reads and checks the header of a file whose content is `bytes`. Messages name it `path`.
TensorTable parse_safetensors_header(std::span<const std::byte> bytes, const std::string& path);

// Writes `tensors` (their `file` is ignored) so that a reader sees the whole file or none.
void write_safetensors(const std::string& path, std::vector<TensorView> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace heddle
