#include "heddle/model/hf/rope_config.h"

#include <cmath>

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

constexpr RopePlace kPlace{.max_position_embeddings = 256, .head_dim = 4};

Config rope_config(const std::string& text) {
  return Config::parse("{" + text + "}", "c");
}

RopeConfig read(const std::string& scaling) {
  return read_rope(rope_config(R"("rope_parameters":{"rope_theta":100.0,)" + scaling + "}"), kPlace);
}

template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_refused(const std::string& scaling, const std::string& part) {
  const std::string text = refusal([&] { read(scaling); });
  EXPECT_NE(text.find("rope_parameters." + part), std::string::npos) << scaling << " -> " << text;
}

TEST(RopeConfig, ReadsLinear) {
  const RopeConfig rope = read(R"("rope_type":"linear","factor":4)");
  EXPECT_EQ(rope.type, RopeType::kLinear);
  EXPECT_EQ(rope.factor, 4.0);
  EXPECT_EQ(rope.max_positions, 256);
  EXPECT_EQ(rope.limit(), "");
  expect_refused(R"("rope_type":"linear","factor":0.5)", "factor = 0.5: must be a number from 1");
}

TEST(RopeConfig, NotesKeysThatHaveNoEffect) {
  const auto notes_of = [](const std::string& scaling) {
    const Config file = rope_config(R"("rope_scaling":{)" + scaling + "}");
    read_rope(file, kPlace);
    return file.notes();
  };
  const std::vector<std::string> notes =
      notes_of(R"("rope_type":"yarn","factor":4,"original_max_position_embeddings":64,"attn_factor":0.9,
                  "finetuned":true)");
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].find("rope_scaling.attn_factor = 0.9: it has no effect"), std::string::npos) << notes[0];
  EXPECT_NE(notes[1].find("rope_scaling.finetuned = true"), std::string::npos) << notes[1];
  EXPECT_EQ(notes_of(R"("type":"default","rope_type":"default","mrope_section":[2,3,3])").size(), 1u);
  EXPECT_EQ(notes_of(R"("rope_type":"linear","factor":2,"beta_fast":1)").size(), 1u);
  EXPECT_TRUE(notes_of(R"("rope_type":"yarn","factor":4)").empty());
}

TEST(RopeConfig, TurnsAPartOfEachHeadInFamiliesThatDo) {
  const RopePlace place{.max_position_embeddings = 256, .head_dim = 20, .partial = 0.25};
  const auto dim = [&](const std::string& text) { return read_rope(rope_config(text), place).rotary_dim; };
  EXPECT_EQ(read("\"rope_type\":\"default\"").rotary_dim, 4);
  EXPECT_THROW(read(R"("partial_rotary_factor":0.5)"), Error);
  EXPECT_EQ(dim(R"("partial_rotary_factor":0.5)"), 10);
  EXPECT_EQ(dim(R"("partial_rotary_factor":0.5,"rope_parameters":{"partial_rotary_factor":0.4})"), 8);
  EXPECT_EQ(dim(R"("partial_rotary_factor":0.5,"rope_scaling":{"type":"linear","factor":2})"), 10);
  EXPECT_NE(refusal([&] { dim(""); }).find("makes 5 of a head's 20 elements turn"), std::string::npos);
  EXPECT_NE(refusal([&] { dim(R"("partial_rotary_factor":0)"); }).find("makes 0"), std::string::npos);
}

TEST(RopeConfig, ServesDynamicUpToTheLengthItWasMadeFor) {
  const RopeConfig rope = read(R"("rope_type":"dynamic","factor":4)");
  EXPECT_EQ(rope.type, RopeType::kDynamic);
  EXPECT_EQ(rope.max_positions, 256);
  EXPECT_NE(std::string(rope.limit()).find("max_position_embeddings"), std::string::npos);
}

TEST(RopeConfig, ReadsYarn) {
  RopeConfig rope = read(R"("rope_type":"yarn","factor":8,"original_max_position_embeddings":32)");
  EXPECT_EQ(rope.type, RopeType::kYarn);
  EXPECT_EQ(rope.original_max_position_embeddings, 32);
  EXPECT_EQ(rope.beta_fast, 32.0);
  EXPECT_EQ(rope.beta_slow, 1.0);
  EXPECT_TRUE(rope.truncate);
  EXPECT_DOUBLE_EQ(rope.attention_factor, 0.1 * std::log(8.0) + 1);
  EXPECT_EQ(rope.max_positions, 256);
  rope = read(R"("rope_type":"yarn","factor":null,"original_max_position_embeddings":64,"mscale":0.5,
                 "mscale_all_dim":1,"truncate":false,"beta_fast":16,"beta_slow":2)");
  EXPECT_EQ(rope.factor, 4.0);  // 256 / 64
  EXPECT_DOUBLE_EQ(rope.attention_factor, (0.05 * std::log(4.0) + 1) / (0.1 * std::log(4.0) + 1));
  EXPECT_FALSE(rope.truncate);
  EXPECT_EQ(read(R"("rope_type":"yarn","factor":2,"attention_factor":1.5)").attention_factor, 1.5);
  expect_refused(R"("rope_type":"yarn","factor":2,"beta_fast":0)", "beta_fast = 0: must be a number");
  expect_refused(R"("rope_type":"yarn","factor":2,"beta_fast":1,"beta_slow":2)",
                 "beta_fast = 1: must not be");
  EXPECT_NE(refusal([] {
              read_rope(rope_config(R"("rope_theta":1,"rope_scaling":{"rope_type":"yarn","factor":2})"),
                        kPlace);
            }).find("rope_theta = absent: must be above 1"),
            std::string::npos);
}

TEST(RopeConfig, LongropeHasShortFactorsUpToItsFirstLength) {
  const std::string factors = R"("short_factor":[1,1.5],"long_factor":[2,3])";
  RopeConfig rope = read(R"("rope_type":"longrope","original_max_position_embeddings":64,)" + factors);
  EXPECT_EQ(rope.type, RopeType::kLongrope);
  EXPECT_EQ(rope.short_factor, (std::vector<double>{1, 1.5}));
  EXPECT_EQ(rope.long_factor, (std::vector<double>{2, 3}));
  EXPECT_EQ(rope.max_positions, kPlace.max_position_embeddings);
  EXPECT_EQ(rope.short_positions(), 64);
  EXPECT_NE(rope.limit().find("up to 64 positions has short_factor"), std::string::npos);
  EXPECT_DOUBLE_EQ(rope.attention_factor, std::sqrt(1 + std::log(4.0) / std::log(64.0)));
  // A length next to the rope parameters is preferred to one among them.
  rope = read_rope(rope_config(R"("original_max_position_embeddings":32,"rope_scaling":{"type":"longrope",
                             "original_max_position_embeddings":64,"factor":1,)" +
                               factors + "}"),
                   kPlace);
  EXPECT_EQ(rope.short_positions(), 32);
  EXPECT_EQ(rope.attention_factor, 1.0);
  expect_refused(R"("rope_type":"longrope","short_factor":[1],"long_factor":[2,3])",
                 "short_factor = [1]: must be 2 numbers");
  expect_refused(R"("rope_type":"longrope","short_factor":[1,1])", "long_factor = absent: must be 2 numbers");
  expect_refused(R"("rope_type":"longrope","short_factor":[1,"x"],"long_factor":[1,1])",
                 "short_factor = [1,");
}

TEST(RopeConfig, ReadsOneForEachTypeOfLayer) {
  const Config now =
      rope_config(R"("rope_parameters":{"full_attention":{"rope_type":"linear","factor":8,"rope_theta":1e6},
                               "sliding_attention":{"rope_theta":500}})");
  EXPECT_EQ(read_layer_rope(now, "full_attention", "rope_theta", kPlace).factor, 8.0);
  EXPECT_EQ(read_layer_rope(now, "sliding_attention", "rope_local_base_freq", kPlace).theta, 500.0);
  const Config before = rope_config(R"("rope_theta":1e6,"rope_local_base_freq":500,
                                  "rope_scaling":{"rope_type":"linear","factor":8})");
  EXPECT_EQ(read_layer_rope(before, "full_attention", "rope_theta", kPlace).factor, 8.0);
  const RopeConfig local = read_layer_rope(before, "sliding_attention", "rope_local_base_freq", kPlace);
  EXPECT_EQ(local.theta, 500.0);
  EXPECT_EQ(local.type, RopeType::kDefault);
  const auto refused = [](const std::string& text) {
    return refusal([&] { read_layer_rope(rope_config(text), "full_attention", "rope_theta", kPlace); });
  };
  EXPECT_NE(
      refused(R"("rope_parameters":{"rope_theta":5})").find("rope_parameters.rope_theta = 5: not supported"),
      std::string::npos);
  EXPECT_NE(refused(R"("rope_parameters":{},"rope_scaling":{"factor":2})").find("rope_scaling = {"),
            std::string::npos);
  EXPECT_NE(
      refused(R"("rope_parameters":{"full_attention":{"rope_type":"yarn","factor":2,"truncate":false}})")
          .find("truncate = false: not supported"),
      std::string::npos);
}

}  // namespace
}  // namespace heddle
