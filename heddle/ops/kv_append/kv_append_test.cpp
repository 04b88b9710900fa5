// Tests which columns kv_append refuses.
#include "heddle/ops/kv_append/kv_append.h"

#include <exception>
#include <string>

#include <gtest/gtest.h>

#include "heddle/ir/cases.h"
#include "heddle/ir/registry.h"

namespace heddle {
namespace {

std::string what_is_said(i32 key_column, i32 value_column) {
  const StepExample step{{{.rows = 2}}, 4};
  KvAppend args{.step = step.host(), .state = step.state(), .x = input(DType::kF32, {2, 24})};
  args.keys = args.values = input(DType::kF32, {step.pages(), 1, 4, 8});
  args.key_column = key_column, args.value_column = value_column;
  try {
    get_op("kv_append").infer(reinterpret_cast<std::byte*>(&args));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(KvAppend, RefusesKeysAndValuesInTheSameColumns) {
  EXPECT_EQ(what_is_said(8, 16), "");
  EXPECT_EQ(what_is_said(16, 8), "");
  EXPECT_EQ(what_is_said(8, 15),
            "[kv_append] key_column = 8 and value_column = 15; must be at least 8 columns apart");
  EXPECT_EQ(what_is_said(8, 17),
            "[kv_append] value_column = 17, x is f32 [2, 24]; 8 columns from there must lie in x");
}

}  // namespace
}  // namespace heddle
