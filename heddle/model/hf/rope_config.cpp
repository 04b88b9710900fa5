#include "heddle/model/hf/rope_config.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "heddle/model/hf/family_config.h"

namespace heddle {
namespace {

constexpr double kMinTheta = 1e-3, kMaxTheta = 1e12, kMinFactor = 1e-6, kMaxFactor = 1e6;

// Reads one object of rope parameters, key by key.
class Reader {
 public:
  Reader(const Config& rope, const RopePlace& place, int original)
      : rope_(rope), place_(place), original_(original) {}

  RopeConfig read(double theta) {
    result_.theta = rope_.optional_number("rope_theta", theta, kMinTheta, kMaxTheta);
    result_.max_positions = place_.max_position_embeddings;
    rope_.refuse_unless("partial_rotary_factor", {"1.0", "1"});
    const std::string key = rope_.has("rope_type") ? "rope_type" : "type";
    read_type(key, rope_.optional_string(key, "default"));
    (void)rope_.optional_string("type", "");  // old and new files have it next to rope_type
    if (auto left = rope_.unread(); !left.empty())
      rope_.refuse(left[0], "no such parameter is known for this type");
    return result_;
  }

 private:
  void read_type(const std::string& key, const std::string& type) {
    if (type == "linear")
      read_linear();
    else if (type == "dynamic")
      read_dynamic();
    else if (type == "yarn")
      read_yarn();
    else if (type == "longrope")
      read_longrope();
    else if (type == "llama3")
      read_llama3();
    else if (type != "default")
      rope_.refuse(key, "rotary embeddings may be default, linear, dynamic, yarn, longrope or llama3");
  }

  void begin(RopeType type) {
    result_.type = type;
    result_.factor = rope_.required_number("factor", 1.0, kMaxFactor);
  }
  // The length that the model was first made for. A config.json may have it next to the rope parameters.
  void read_original(int min) {
    const int fallback = place_.max_position_embeddings;
    const int inside = rope_.optional_int("original_max_position_embeddings", fallback, min, kMaxPositions);
    result_.original_max_position_embeddings = original_ > 0 ? original_ : inside;
  }
  double ratio() const {
    return double(place_.max_position_embeddings) / result_.original_max_position_embeddings;
  }

  void read_linear() { begin(RopeType::kLinear); }

  void read_dynamic() {
    begin(RopeType::kDynamic);
    // Files of transformers before 5 may have it; it has no effect there.
    (void)rope_.optional_int("original_max_position_embeddings", 1, 1, kMaxPositions);
  }

  void read_yarn() {
    result_.type = RopeType::kYarn;
    read_original(1);
    result_.factor = rope_.is_null("factor") ? ratio() : rope_.required_number("factor", 1.0, kMaxFactor);
    result_.beta_fast = rope_.optional_number("beta_fast", 32.0, kMinFactor, kMaxFactor);
    result_.beta_slow = rope_.optional_number("beta_slow", 1.0, kMinFactor, kMaxFactor);
    result_.truncate = rope_.optional_bool("truncate", true);
    if (result_.beta_fast < result_.beta_slow) rope_.reject("beta_fast", "must not be below beta_slow");
    if (result_.theta <= 1.0) rope_.reject("rope_theta", "must be above 1 for yarn");
    const double mscale = rope_.optional_number("mscale", 0.0, 0.0, kMaxFactor);
    const double mscale_all_dim = rope_.optional_number("mscale_all_dim", 0.0, 0.0, kMaxFactor);
    const auto scale = [&](double m) {
      return result_.factor <= 1.0 ? 1.0 : 0.1 * m * std::log(result_.factor) + 1.0;
    };
    result_.score_factor = mscale_all_dim > 0 ? scale(mscale_all_dim) : 1.0;
    const double inferred =
        mscale > 0 && mscale_all_dim > 0 ? scale(mscale) / scale(mscale_all_dim) : scale(1);
    result_.attention_factor = rope_.optional_number("attention_factor", inferred, kMinFactor, kMaxFactor);
  }

  void read_longrope() {
    result_.type = RopeType::kLongrope;
    read_original(2);
    result_.short_factor = read_factors("short_factor");
    read_factors("long_factor");
    result_.factor = rope_.optional_number("factor", ratio(), kMinFactor, kMaxFactor);
    const double inferred =
        result_.factor <= 1.0
            ? 1.0
            : std::sqrt(1 + std::log(result_.factor) / std::log(result_.original_max_position_embeddings));
    result_.attention_factor = rope_.optional_number("attention_factor", inferred, kMinFactor, kMaxFactor);
    result_.max_positions = std::min(result_.max_positions, result_.original_max_position_embeddings);
  }

  std::vector<double> read_factors(const std::string& key) {
    auto factors = rope_.optional_numbers(key, kMinFactor, kMaxFactor);
    if (factors.size() != size_t(place_.head_dim / 2))
      rope_.reject(key, fmt::format("must be {} numbers, one for each pair of a head", place_.head_dim / 2));
    return factors;
  }

  void read_llama3() {
    begin(RopeType::kLlama3);
    result_.low_freq_factor = rope_.required_number("low_freq_factor", kMinFactor, kMaxFactor);
    result_.high_freq_factor = rope_.required_number("high_freq_factor", kMinFactor, kMaxFactor);
    if (!(result_.low_freq_factor < result_.high_freq_factor))
      rope_.reject("high_freq_factor", "must be greater than low_freq_factor");
    read_original(1);
  }

  const Config& rope_;
  const RopePlace& place_;
  int original_;
  RopeConfig result_;
};

RopeConfig default_rope(double theta, const RopePlace& place) {
  return {.theta = theta, .max_positions = place.max_position_embeddings};
}

}  // namespace

const char* RopeConfig::limit() const {
  if (type == RopeType::kDynamic)
    return "rope_type dynamic is served up to max_position_embeddings: longer texts change the frequencies "
           "of all "
           "positions";
  if (type == RopeType::kLongrope)
    return "rope_type longrope is served up to original_max_position_embeddings, with short_factor: longer "
           "texts "
           "change the frequencies of all positions";
  return "";
}

RopeConfig read_rope(const Config& config, const RopePlace& place) {
  config.refuse_unless("partial_rotary_factor", {"1.0", "1"});
  const double theta = config.optional_number("rope_theta", place.theta, kMinTheta, kMaxTheta);
  const int original = config.optional_int("original_max_position_embeddings", 0, 2, kMaxPositions);
  std::optional<Config> rope = config.section("rope_parameters");
  // transformers 5 prefers a non-empty `rope_scaling` when a file has both.
  if (auto scaling = config.section("rope_scaling"); scaling && !scaling->unread().empty())
    rope = std::move(scaling);
  return rope ? Reader(*rope, place, original).read(theta) : default_rope(theta, place);
}

RopeConfig read_layer_rope(const Config& config, const std::string& layer_type, const std::string& theta_key,
                           const RopePlace& place) {
  config.refuse_unless("partial_rotary_factor", {"1.0", "1"});
  const double theta = config.optional_number(theta_key, place.theta, kMinTheta, kMaxTheta);
  if (auto all = config.section("rope_parameters")) {
    for (const std::string& key : all->unread())
      if (key != "full_attention" && key != "sliding_attention")
        all->refuse(key, "rope parameters stand under full_attention and sliding_attention here");
    if (auto both = config.section("rope_scaling"); both && !both->unread().empty())
      config.refuse("rope_scaling", "it may be absent where there are rope_parameters");
    auto rope = all->section(layer_type);
    if (rope && !rope->optional_bool("truncate", true))
      rope->refuse("truncate", "by layer it may be absent or true");
    return rope ? Reader(*rope, place, 0).read(theta) : default_rope(theta, place);
  }
  if (layer_type == "full_attention")
    if (auto scaling = config.section("rope_scaling")) return Reader(*scaling, place, 0).read(theta);
  return default_rope(theta, place);
}

}  // namespace heddle
