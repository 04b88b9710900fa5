#include "heddle/model/hf/quantisation.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "heddle/base/integer.h"

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
  const int bits = weights.optional_int("num_bits", 4, 1, 64);
  if (bits != 4 && bits != 8) weights.refuse("num_bits", "it may be 4 or 8");
  weights.refuse_unless("actorder", {"\"weight\"", "\"static\""});
  const std::string strategy = weights.optional_string("strategy", "group");
  if (strategy != "group" && strategy != "channel") weights.refuse("strategy", "it may be group or channel");
  const Packing packing{bits, strategy == "group" ? weights.required_int("group_size", 1, 0xffff) : 0};
  if (std::ranges::count(format.packings, packing) == 0) format.packings.push_back(packing);
}

int read_group(const Config& config) {
  const int group = config.optional_int("group_size", 128, -1, 0xffff);
  return group > 0 ? group : 0;
}

void read_gptq(const Config& config, CodeFormat& format) {
  format.kind = CodeFormat::Kind::kGptq, format.group = read_group(config);
  format.bits = config.required_int("bits", 1, 8);
  if (format.bits != 4 && format.bits != 8) config.refuse("bits", "it may be 4 or 8");
  const std::string form = config.optional_string("checkpoint_format", "gptq");
  if (form != "gptq" && form != "gptq_v2") config.refuse("checkpoint_format", "it may be gptq or gptq_v2");
  format.zeros_less_one = form == "gptq";
}

void read_awq(const Config& config, CodeFormat& format) {
  format.kind = CodeFormat::Kind::kAwq, format.group = read_group(config);
  const char* bits = config.has("bits") ? "bits" : "w_bit";
  if (config.optional_int(bits, 4, 1, 64) != 4) config.refuse(bits, "it may be 4");
  const std::string version = config.optional_string("version", "gemm");
  if (version != "gemm" && version != "GEMM") config.refuse("version", "it may be gemm");
}

void read_integers(const Config& weights, CodeFormat& format) {
  if (weights.optional_string("type", "int") != "int") weights.refuse("type", "it may be int");
  if (weights.optional_int("num_bits", 8, 1, 64) != 8) weights.refuse("num_bits", "it may be 8");
  weights.refuse_unless("actorder", {"\"weight\"", "\"static\""});
  const std::string strategy = weights.optional_string("strategy", "channel");
  if (strategy != "group" && strategy != "channel" && strategy != "tensor")
    weights.refuse("strategy", "it may be group, channel or tensor");
  format.kind = CodeFormat::Kind::kInt8;
  format.group = strategy == "group" ? weights.required_int("group_size", 1, 0xffff) : 0;
}

// Floats of 4 bits, whose tensors say the rest.
template <int kGroup>
void read_four_bit_floats(const Config& weights, CodeFormat& format) {
  if (weights.optional_string("type", "") != "float") weights.refuse("type", "it may be float");
  if (weights.optional_int("num_bits", 4, 1, 64) != 4) weights.refuse("num_bits", "it may be 4");
  if (weights.optional_int("group_size", kGroup, 1, 0xffff) != kGroup)
    weights.refuse("group_size", "it may be " + std::to_string(kGroup));
  format.mxfp4 |= kGroup == 32;
}

struct StoredForm {
  std::string_view name;
  void (*read)(const Config& weights, CodeFormat& format);
};
constexpr StoredForm kForms[] = {
    {"float-quantized", read_floats},
    {"naive-quantized", read_floats},
    {"int-quantized", read_integers},
    {"pack-quantized", read_packed},
    {"nvfp4-pack-quantized", read_four_bit_floats<16>},
    {"mxfp4-pack-quantized", read_four_bit_floats<32>},
};
constexpr std::string_view kMixed = "mixed-precision";

const StoredForm& form_in(const Config& config, const std::string& name) {
  const auto* form = std::ranges::find(kForms, name, &StoredForm::name);
  if (form == std::end(kForms))
    config.refuse("format",
                  "it may be float-quantized, int-quantized, pack-quantized, nvfp4-pack-quantized, "
                  "mxfp4-pack-quantized or mixed-precision");
  return *form;
}

void read_compressed(const Config& quantised, CodeFormat& format) {
  const std::string all = quantised.optional_string("format", "");
  if (all != kMixed) form_in(quantised, all);
  const auto groups = quantised.section("config_groups");
  for (const std::string& name : groups ? groups->unread() : std::vector<std::string>()) {
    const auto group = groups->section(name);
    const auto weights = group ? group->section("weights") : std::nullopt;
    if (!weights) continue;
    const std::string own = group->optional_string("format", "");
    form_in(own.empty() ? quantised : *group, own.empty() ? all : own).read(*weights, format);
  }
  if (all == "pack-quantized" && format.packings.empty())
    quantised.reject("config_groups", "must describe the weights of a group");
}

// The tensors of 4-bit floats say how they are stored.
void read_bitsandbytes(const Config& config) {
  if (config.optional_bool("load_in_8bit", false)) config.refuse("load_in_8bit", "weights may have 4 bits");
}

void read_modelopt(const Config& config) {
  const std::string format = config.optional_string("quant_algo", "NVFP4");
  if (format != "NVFP4" && format != "FP8") config.refuse("quant_algo", "it may be NVFP4 or FP8");
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
  else if (method == "gptq")
    read_gptq(*quantised, format);
  else if (method == "awq")
    read_awq(*quantised, format);
  else if (method == "bitsandbytes")
    read_bitsandbytes(*quantised);
  else if (method == "modelopt")
    read_modelopt(*quantised);
  else if (method != "fbgemm_fp8")
    config.refuse("quantization_config",
                  "its quant_method may be fp8, fbgemm_fp8, gptq, awq, bitsandbytes, modelopt or "
                  "compressed-tensors");
  return format;
}

std::optional<Packing> packing_of(const CodeFormat& format, int64_t cols, int64_t words, int64_t scales) {
  std::optional<Packing> found;
  for (Packing packing : format.packings) {
    if (packing.group >= cols) packing.group = 0;
    const int64_t groups = packing.group > 0 ? ceil_div(cols, int64_t(packing.group)) : 1;
    if (words != ceil_div(cols, int64_t(32 / packing.bits)) || scales != groups) continue;
    if (found && *found != packing) return std::nullopt;
    found = packing;
  }
  return found;
}

}  // namespace heddle
