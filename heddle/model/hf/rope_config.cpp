#include "heddle/model/hf/rope_config.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "heddle/model/hf/family_config.h"

namespace heddle {
namespace {

constexpr double kMinTheta = 1e-3, kMaxTheta = 1e12, kMinFactor = 1e-6, kMaxFactor = 1e6;

// The elements of a head that turn, as transformers rounds them.
int rotary_dim_of(const Config& config, const std::string& key, const RopePlace& place, double otherwise) {
  if (place.partial == 0) {
    config.refuse_unless(key, {"1.0", "1"});
    return place.head_dim;
  }
  const int dim = int(place.head_dim * config.optional_number(key, otherwise, 0.0, 1.0));
  if (dim < 2 || dim % 2 != 0)
    config.reject(key, fmt::format("makes {} of a head's {} elements turn; must be an even number of them",
                                   dim, place.head_dim));
  return dim;
}

// Reads one object of rope parameters, key by key.
class Reader {
 public:
  // `partial`: partial_rotary_factor, if these parameters have none.
  Reader(const Config& rope, const RopePlace& place, int original, double partial)
      : rope_(rope), place_(place), original_(original), partial_(partial) {}

  RopeConfig read(double theta) {
    result_.theta = rope_.optional_number("rope_theta", theta, kMinTheta, kMaxTheta);
    result_.max_positions = place_.max_position_embeddings;
    const std::string key = rope_.has("rope_type") ? "rope_type" : "type";
    const std::string type = rope_.optional_string(key, "default");
    const bool whole = place_.proportional && type == "proportional";
    result_.rotary_dim =
        whole ? place_.head_dim : rotary_dim_of(rope_, "partial_rotary_factor", place_, partial_);
    whole ? read_proportional() : read_type(key, type);
    (void)rope_.optional_string("type", "");  // old and new files have it next to rope_type
    if (place_.scales_queries) read_query_scale();
    for (const char* unused : {"mrope_section", "mrope_interleaved"})
      if (place_.has_sections) (void)rope_.has(unused);
    for (const std::string& unread : rope_.unread())
      rope_.note(unread, "it has no effect for this rope_type in transformers, and none here");
    return result_;
  }

 private:
  void read_query_scale() {
    result_.query_beta = rope_.optional_number("llama_4_scaling_beta", 0.0, 0.0, kMaxFactor);
    (void)rope_.has("max_position_embeddings");  // stands next to the rope parameters too
    if (result_.query_beta > 0 && result_.original_max_position_embeddings == 0) read_original(1);
  }

  void read_type(const std::string& key, std::string type) {
    if (place_.has_sections && type == "mrope") type = "default";
    if (place_.phi_names && (type == "su" || type == "yarn")) type = "longrope";
    if (place_.own_scales && type != "default" && type != "longrope")
      rope_.refuse(key, "rotary embeddings of this family may be default or longrope");
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

  void read_proportional() {
    result_.type = RopeType::kProportional;
    result_.factor = rope_.optional_number("factor", 1.0, 1.0, kMaxFactor);
    result_.turning_pairs =
        int(std::floor(rope_.optional_number("partial_rotary_factor", 1.0, 0.0, 1.0) * place_.head_dim / 2));
  }

  void read_linear() { begin(RopeType::kLinear); }

  void read_dynamic() {
    const double alpha = place_.scales_theta ? rope_.optional_number("alpha", 0.0, 0.0, kMaxFactor) : 0;
    if (alpha > 0) {
      const double dim = result_.rotary_dim;
      if (dim <= 2) rope_.reject("alpha", "must be absent where two elements of a head turn");
      result_.theta *= std::pow(alpha, dim / (dim - 2));
      for (const char* unused : {"factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"})
        (void)rope_.has(unused);  // such files have them, to no effect
      return;
    }
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
    result_.truncate = !rope_.is_null("truncate") && rope_.optional_bool("truncate", true);
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
    result_.long_factor = read_factors("long_factor");
    result_.factor = rope_.optional_number("factor", ratio(), kMinFactor, kMaxFactor);
    const double inferred =
        result_.factor <= 1.0
            ? 1.0
            : std::sqrt(1 + std::log(result_.factor) / std::log(result_.original_max_position_embeddings));
    result_.attention_factor = rope_.optional_number("attention_factor", inferred, kMinFactor, kMaxFactor);
    if (!place_.own_scales) return;
    result_.attention_factor = rope_.required_number("short_mscale", kMinFactor, kMaxFactor);
    (void)rope_.required_number("long_mscale", kMinFactor, kMaxFactor);
    result_.max_positions = std::min(result_.max_positions, result_.original_max_position_embeddings);
  }

  std::vector<double> read_factors(const std::string& key) {
    auto factors = rope_.optional_numbers(key, kMinFactor, kMaxFactor);
    if (factors.size() != size_t(result_.rotary_dim / 2))
      rope_.reject(key,
                   fmt::format("must be {} numbers, one for each pair of a head", result_.rotary_dim / 2));
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
  double partial_;
  RopeConfig result_;
};

RopeConfig default_rope(double theta, const RopePlace& place, int rotary_dim) {
  return {.theta = theta, .rotary_dim = rotary_dim, .max_positions = place.max_position_embeddings};
}

// The factor that stands next to rope_theta.
double outer_partial(const Config& config, const RopePlace& place) {
  rotary_dim_of(config, place.partial_key, place, place.partial);
  return config.optional_number(place.partial_key, place.partial, 0.0, 1.0);
}

}  // namespace

int RopeConfig::short_positions() const {
  return type == RopeType::kLongrope ? std::min(max_positions, original_max_position_embeddings)
                                     : max_positions;
}

std::string RopeConfig::limit() const {
  if (type == RopeType::kDynamic)
    return "rope_type dynamic is served up to max_position_embeddings: longer texts change the frequencies "
           "of all positions";
  if (short_positions() < max_positions)
    return fmt::format(
        "rope_type longrope: a context of up to {} positions has short_factor, a longer one "
        "long_factor, for short texts too",
        short_positions());
  return "";
}

RopeConfig read_rope(const Config& config, const RopePlace& place) {
  const double theta = config.optional_number(place.theta_key, place.theta, kMinTheta, kMaxTheta);
  const char* key = "original_max_position_embeddings";
  const int original = config.has(key) ? config.required_int(key, 2, kMaxPositions) : place.original;
  std::optional<Config> rope = config.section("rope_parameters");
  // transformers 5 prefers a non-empty `rope_scaling` when a file has both.
  if (auto scaling = config.section("rope_scaling"); scaling && !scaling->unread().empty())
    rope = std::move(scaling);
  if (!rope && *place.otherwise) rope = Config::parse(place.otherwise, "config.json without rope_parameters");
  // A factor among the rope parameters is preferred to one next to them.
  const bool inside = rope && place.partial > 0 && rope->has("partial_rotary_factor");
  const double partial = inside ? place.partial : outer_partial(config, place);
  if (rope) return Reader(*rope, place, original, partial).read(theta);
  return default_rope(theta, place, rotary_dim_of(config, place.partial_key, place, partial));
}

RopeConfig read_layer_rope(const Config& config, const std::string& layer_type, const std::string& theta_key,
                           const RopePlace& place) {
  config.refuse_unless("partial_rotary_factor", {"1.0", "1"});
  const double theta = config.optional_number(theta_key, place.theta, kMinTheta, kMaxTheta);
  std::optional<Config> all = config.section("rope_parameters");
  if (!all && *place.otherwise) all = Config::parse(place.otherwise, "config.json without rope_parameters");
  if (all) {
    for (const std::string& key : all->unread())
      if (key != "full_attention" && key != "sliding_attention")
        all->refuse(key, "rope parameters stand under full_attention and sliding_attention here");
    if (auto both = config.section("rope_scaling"); both && !both->unread().empty())
      config.refuse("rope_scaling", "it may be absent where there are rope_parameters");
    auto rope = all->section(layer_type);
    if (rope && !rope->optional_bool("truncate", true))
      rope->refuse("truncate", "by layer it may be absent or true");
    return rope ? Reader(*rope, place, 0, 0).read(theta) : default_rope(theta, place, place.head_dim);
  }
  if (layer_type == "full_attention")
    if (auto scaling = config.section("rope_scaling")) return Reader(*scaling, place, 0, 0).read(theta);
  return default_rope(theta, place, place.head_dim);
}

}  // namespace heddle
