#include "heddle/model/hf/quantisation.h"

#include <optional>

#include <fmt/format.h>

namespace heddle {
namespace {

void read_block(const Config& config, const char* key, CodeFormat& format) {
  if (!config.has(key)) return;
  const std::vector<int> sizes = config.optional_ints(key, 1, 0xffff);
  if (sizes.size() != 2) config.reject(key, "must be two numbers, rows and columns of a block");
  format.block_rows = sizes[0], format.block_cols = sizes[1];
}

void read_floats(const Config& weights, CodeFormat& format) {
  if (weights.optional_string("type", "") != "float") weights.refuse("type", "it may be float");
  if (weights.optional_int("num_bits", 8, 1, 64) != 8) weights.refuse("num_bits", "it may be 8");
  read_block(weights, "block_structure", format);
}

void read_packed(const Config& weights, CodeFormat& format) {
  if (weights.optional_string("type", "int") != "int") weights.refuse("type", "it may be int");
  if (weights.optional_int("num_bits", 4, 1, 64) != 4) weights.refuse("num_bits", "it may be 4");
  weights.refuse_unless("actorder", {"\"weight\"", "\"static\""});
  const std::string strategy = weights.optional_string("strategy", "group");
  if (strategy != "group" && strategy != "channel") weights.refuse("strategy", "it may be group or channel");
  const int group = strategy == "group" ? weights.required_int("group_size", 1, 0xffff) : 0;
  if (format.packed && group != format.group)
    weights.refuse("group_size",
                   fmt::format("another group of weights has {}; must be the same", format.group));
  format.packed = true, format.group = group;
}

void read_compressed(const Config& quantised, CodeFormat& format) {
  const std::string all = quantised.optional_string("format", "");
  if (all != "float-quantized" && all != "naive-quantized" && all != "pack-quantized")
    quantised.refuse("format", "it may be float-quantized or pack-quantized");
  const auto groups = quantised.section("config_groups");
  for (const std::string& name : groups ? groups->unread() : std::vector<std::string>()) {
    const auto group = groups->section(name);
    const auto weights = group ? group->section("weights") : std::nullopt;
    if (weights) all == "pack-quantized" ? read_packed(*weights, format) : read_floats(*weights, format);
  }
  if (all == "pack-quantized" && !format.packed)
    quantised.reject("config_groups", "must describe the weights of a group");
}

}  // namespace

CodeFormat read_code_format(const Config& config) {
  CodeFormat format;
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
