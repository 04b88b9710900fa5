#include "heddle/model/hf/quantisation.h"

#include <array>

namespace heddle {
namespace {

void read_block(const Config& config, const char* key, Fp8Format& format) {
  if (!config.has(key)) return;
  const std::vector<int> sizes = config.optional_ints(key, 1, 1 << 20);
  if (sizes.size() != 2) config.reject(key, "must be two numbers, rows and columns of a block");
  format = {sizes[0], sizes[1]};
}

void read_group(const Config& group, Fp8Format& format) {
  const auto weights = group.section("weights");
  if (!weights) return;
  if (weights->optional_string("type", "") != "float") weights->refuse("type", "it may be float");
  if (weights->optional_int("num_bits", 8, 1, 64) != 8) weights->refuse("num_bits", "it may be 8");
  read_block(*weights, "block_structure", format);
}

void read_compressed(const Config& quantised, Fp8Format& format) {
  if (const std::string name = quantised.optional_string("format", "");
      name != "float-quantized" && name != "naive-quantized")
    quantised.refuse("format", "it may be float-quantized");
  if (const auto groups = quantised.section("config_groups"))
    for (const std::string& name : groups->unread())
      if (const auto group = groups->section(name)) read_group(*group, format);
}

}  // namespace

Fp8Format read_fp8_format(const Config& config) {
  Fp8Format format;
  const auto quantised = config.section("quantization_config");
  if (!quantised) return format;
  const std::string method = quantised->optional_string("quant_method", "");
  if (method == "compressed-tensors")
    read_compressed(*quantised, format);
  else if (method == "fp8")
    read_block(*quantised, "weight_block_size", format);
  else if (method != "fbgemm_fp8")
    config.refuse("quantization_config", "its quant_method may be fp8, fbgemm_fp8 or compressed-tensors");
  return format;
}

}  // namespace heddle
