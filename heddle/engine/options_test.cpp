// Each field of EngineOptions is visited, and what decides programs is the same after it went through text.
#include "heddle/engine/options.h"

#include <set>
#include <type_traits>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/engine/artefact.h"
#include "heddle/ir/field_count.h"

namespace heddle {

// Optional fields convert it where they are counted.
template <class T>
constexpr AnyField::operator T() const noexcept {
  return T();
}

namespace {

// A value that differs from `value` and from what an unset option has.
void change(i32& value) {
  value += 3;
}
void change(bool& value) {
  value = !value;
}
void change(std::string& value) {
  value = "dag";
}
void change(std::optional<DType>& value) {
  value = DType::kBf16;
}

std::string refusal(const EngineOptions& options) {
  try {
    validate(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(EngineOptions, VisitEveryField) {
  std::set<const void*> fields;
  std::set<std::string> names;
  const EngineOptions options;
  EngineOptions::visit(options, [&](const std::string& name, const auto& field, const Option& option) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(fields.insert(&field).second) << name;
    EXPECT_FALSE(option.doc.empty()) << name;
  });
  constexpr size_t kNested = field_count<AttentionSplits>() + field_count<PassOptions>();
  EXPECT_EQ(fields.size(), field_count<EngineOptions>() - 2 + kNested);
}

TEST(EngineOptions, AreTheSameAfterText) {
  EngineOptions changed;
  visit_plain(changed, [](const char*, auto& field, const Option&) { change(field); });
  visit_plain(changed, [](const char* name, const auto& field, const Option&) {
    std::remove_cvref_t<decltype(field)> read{};
    EXPECT_TRUE(read_option(option_text(field), read)) << name;
    EXPECT_EQ(read, field) << name;
  });
  i32 number = 0;
  bool truth = false;
  std::optional<DType> dtype;
  for (const std::string text : {"", "x", "1x", "99999999999"}) {
    EXPECT_FALSE(read_option(text, number)) << text;
    EXPECT_FALSE(read_option(text, truth)) << text;
    EXPECT_FALSE(read_option(text, dtype)) << text;
  }
}

// All that decides programs is in an artefact, and comes out of it as it went in.
TEST(EngineOptions, AreKeptByArtefacts) {
  EngineOptions made;
  Artefact artefact;
  visit_plain(made, [](const char*, auto& field, const Option& option) {
    if (option.kept != Kept::kNot) change(field);
  });
  artefact.settings = settings_of(made);
  const EngineOptions again = options_of(artefact);
  EXPECT_EQ(settings_of(again), artefact.settings);
  EXPECT_EQ(again.scheduler, "dag");
  EXPECT_EQ(again.workers, 3);
  EXPECT_EQ(again.splits.unit, 3);
  EXPECT_EQ(again.kv_dtype, DType::kBf16);
  EXPECT_FALSE(again.passes.fuse_prologues);
  for (const auto& [name, text] : settings_of(made)) {
    Artefact without = artefact, wrong = artefact;
    without.settings.erase(name);
    EXPECT_THROW(options_of(without), Error) << name;
    wrong.settings["other"] = text;
    EXPECT_THROW(options_of(wrong), Error) << name;
  }
}

TEST(EngineOptions, AreRefusedByNameValueAndRange) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_NE(refusal({.workers = -1}).find("workers = -1; must be 0 (one for each thread"), std::string::npos);
  EXPECT_NE(refusal({.max_sequences = 0}).find("max_sequences = 0; must be 1 to 512"), std::string::npos);
  EXPECT_NE(refusal({.page_size = 0}).find("page_size = 0; must be 1 to 65536"), std::string::npos);
  EXPECT_NE(refusal({.splits = {.most = 1025}}).find("max_splits = 1025"), std::string::npos);
  EXPECT_NE(refusal({.device = 1}).find("there is no device 1;"), std::string::npos);
  EXPECT_NE(refusal({.device = -1}).find("there is no device -1;"), std::string::npos);
  EXPECT_NE(refusal({.scheduler = "none"}).find("none"), std::string::npos);
  EXPECT_NE(refusal({.weights = "none"}).find("weights = none; must be codes, floats"), std::string::npos);
}

TEST(EngineOptions, MakeFloatsOfWeightsUnlessCodesAreAskedFor) {
  const ModelInfo model{.max_positions = 60};
  for (const bool gpu : {false, true}) {
    EngineOptions unset{.target = gpu ? gpu_target(3) : cpu_target(3)}, codes = unset;
    codes.weights = "codes";
    complete(model, unset), complete(model, codes);
    EXPECT_EQ(unset.weights, "floats");
    EXPECT_EQ(codes.weights, "codes");
  }
}

TEST(EngineOptions, AreCompletedOnce) {
  ModelInfo model;
  model.max_positions = 100, model.kv_heads = 2;
  EngineOptions options{.workers = 5};
  complete(model, options);
  EXPECT_EQ(options.max_context, 100);
  EXPECT_EQ(options.splits.unit, cpu_target(5).splits.unit);
  const EngineOptions once = options;
  complete(model, options);
  EXPECT_EQ(settings_of(options), settings_of(once));
  options.max_context = 101;
  EXPECT_THROW(complete(model, options), Error);
  // Positions mean something else beyond 60, so a longer context must be asked for, and is noted.
  model.short_positions = 60, model.position_limit = "why";
  EngineOptions shorter{.workers = 5};
  complete(model, shorter);
  EXPECT_EQ(shorter.max_context, 60);
  EXPECT_EQ(context_note(model, 60), "");
  EXPECT_EQ(context_note(model, 61), "[engine] max_context = 61: why");
}

}  // namespace
}  // namespace heddle
