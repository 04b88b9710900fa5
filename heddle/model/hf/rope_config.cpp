#include "heddle/model/hf/rope_config.h"

#include "heddle/model/hf/family_config.h"

namespace heddle {
namespace {

constexpr double kMaxTheta = 1e12, kMaxFactor = 1e6;

void read_llama3(const Config& rope, int max_position_embeddings, RopeConfig& result) {
  result.type = RopeType::kLlama3;
  result.factor = rope.required_number("factor", 1.0, kMaxFactor);
  result.low_freq_factor = rope.required_number("low_freq_factor", 1e-6, kMaxFactor);
  result.high_freq_factor = rope.required_number("high_freq_factor", 1e-6, kMaxFactor);
  if (!(result.low_freq_factor < result.high_freq_factor))
    rope.reject("high_freq_factor", "must be greater than low_freq_factor");
  result.original_max_position_embeddings =
      rope.optional_int("original_max_position_embeddings", max_position_embeddings, 1, kMaxPositions);
}

}  // namespace

RopeConfig read_rope(const Config& config, int max_position_embeddings) {
  RopeConfig result;
  result.theta = config.optional_number("rope_theta", result.theta, 1e-3, kMaxTheta);
  result.partial_rotary_factor = config.optional_number("partial_rotary_factor", 1.0, 1e-3, 1.0);
  std::optional<Config> rope = config.section("rope_parameters");
  // transformers 5 lets a `rope_scaling` that is not empty win where a file has both.
  if (auto scaling = config.section("rope_scaling"); scaling && !scaling->unread().empty()) rope = scaling;
  if (!rope) return result;

  result.theta = rope->optional_number("rope_theta", result.theta, 1e-3, kMaxTheta);
  result.partial_rotary_factor =
      rope->optional_number("partial_rotary_factor", result.partial_rotary_factor, 1e-3, 1.0);
  const std::string key = rope->has("rope_type") ? "rope_type" : "type";
  const std::string type = rope->optional_string(key, "default");
  if (type == "llama3")
    read_llama3(*rope, max_position_embeddings, result);
  else if (type != "default")
    rope->refuse(key, "rotary embeddings may be \"default\" or \"llama3\"");
  (void)rope->optional_string("type", "");  // files of both ages write it beside rope_type
  if (auto left = rope->unread(); !left.empty())
    rope->refuse(left[0], "no such parameter is known for this type");
  return result;
}

void refuse_partial_rope(const Config& config) {
  for (auto place :
       {std::optional(config), config.section("rope_parameters"), config.section("rope_scaling")})
    if (place) place->refuse_unless("partial_rotary_factor", {"1.0", "1"});
}

}  // namespace heddle
