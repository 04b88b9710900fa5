// Tests on all ops of the folders what every op must declare.
#include "heddle/ir/registry.h"

#include <algorithm>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/ir/check/check.h"
#include "heddle/ir/program/program.h"
#include "tests/support/case_program.h"

namespace heddle {
namespace {

class Registry : public testing::TestWithParam<const OpSpec*> {};

// Sizes and attributes. Several of them may have to change together.
std::vector<i32*> numbers_of(const OpSpec& op, std::byte* args) {
  std::vector<i32*> numbers;
  for (const Field& field : op.fields) {
    if (field.is_attribute()) {
      field.with_attribute(args, [&]<class T>(T& value) {
        if constexpr (std::is_same_v<T, i32>) numbers.push_back(&value);
      });
      continue;
    }
    Tensor& value = field.elements(args);
    for (int d = 0; d < value.rank; ++d) numbers.push_back(&value.size[d]);
  }
  return numbers;
}

TEST(Registry, NamesAreUniqueAndSorted) {
  std::vector<std::string> names;
  for (const OpSpec* op : all_ops()) names.push_back(op->name);
  EXPECT_GE(names.size(), 20u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  std::set<u64> hashes;
  for (const OpSpec* op : all_ops()) hashes.insert(chain_hash(std::span(&op, 1), 0));
  EXPECT_EQ(hashes.size(), names.size());
}

TEST_P(Registry, DeclaresWhatAnOpNeeds) {
  const OpSpec& op = *GetParam();
  EXPECT_EQ(find_op(op.name), &op);
  EXPECT_GE(op.doc.size(), 8u);
  EXPECT_NO_THROW(require_complete(op));
  ASSERT_TRUE(op.reference != nullptr);
  ASSERT_TRUE(op.cases != nullptr);
  EXPECT_FALSE(op.cases().empty());
}

TEST_P(Registry, VisitShowsEveryFieldOnceInOrder) {
  const OpSpec& op = *GetParam();
  EXPECT_EQ(std::ranges::count_if(op.fields, &Field::is_whole), op.args_fields)
      << "visit and the struct differ";
  std::set<std::string> names;
  size_t end = 0;
  for (const Field& field : op.fields) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name << " comes twice";
    EXPECT_GE(field.offset, end) << field.name << " comes out of order";
    end = field.offset + field.size();
  }
  EXPECT_LE(end, op.args_size());
}

TEST_P(Registry, RefusesTensorsOfAnotherRank) {
  const OpSpec& op = *GetParam();
  const Case test = op.cases().front();
  std::vector<std::byte> args = test.args;
  for (const Field& field : op.fields) {
    if (field.is_attribute()) continue;
    Tensor& tensor = field.elements(args.data());
    if (tensor.rank == 0) continue;  // left out, or infer fills it in
    const Tensor right = tensor;
    for (u8 rank = 1; rank <= kMaxRank; ++rank) {
      if (rank == right.rank) continue;
      tensor.rank = rank;
      for (int d = 0; d < rank; ++d) tensor.size[d] = 8, tensor.stride[d] = d + 1 < rank ? 8 : 1;
      std::vector<std::byte> copy = args;
      EXPECT_THROW(op.infer(copy.data()), Error) << field.name << " of rank " << int(rank);
    }
    tensor = right;
  }
}

// The rules name the op and what is wrong.
void expect_refused(const OpSpec& op, std::vector<std::byte> args, const std::string& wrong) {
  try {
    require_dtypes(op.name, op.fields, args.data());
    op.infer(args.data());
    ADD_FAILURE() << op.name << " takes " << wrong;
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("[" + std::string(op.name) + "]")) << message;
    EXPECT_NE(message.find(wrong), std::string::npos) << message;
  }
}

TEST_P(Registry, RefusesTensorsOfAnotherDtype) {
  const OpSpec& op = *GetParam();
  for (const Case& test : op.cases()) {
    EXPECT_NO_THROW(require_dtypes(op.name, op.fields, test.args.data())) << test.name;
    for (const Field& field : op.fields) {
      if (field.is_attribute() || field.elements(test.args.data()).rank == 0) continue;
      for (int i = 0; i < kNumDTypes; ++i) {
        std::vector<std::byte> args = test.args;
        field.elements(args.data()).dtype = DType(i);
        if (!field.allows(DType(i))) expect_refused(op, args, name(DType(i)));
      }
    }
  }
}

// Arguments that a call must give, and those that it may leave out.
TEST_P(Registry, KnowsWhichArgumentsAreOptional) {
  const OpSpec& op = *GetParam();
  std::set<std::string> left_out, given;
  for (const Case& test : op.cases()) {
    std::vector<std::byte> args = test.args;
    op.infer(args.data());
    for (const Field& field : op.fields)
      if (!field.is_attribute())
        (field.elements(args.data()).rank == 0 ? left_out : given).insert(field.name);
  }
  for (const Field& field : op.fields) {
    if (field.is_attribute()) continue;
    EXPECT_EQ(left_out.contains(field.name), field.optional) << field.name;
    EXPECT_TRUE(given.contains(field.name)) << field.name << " is given in no case";
    if (field.optional || field.writes()) continue;
    std::vector<std::byte> args = op.cases().front().args;
    field.elements(args.data()) = {};
    EXPECT_THROW(op.infer(args.data()), Error) << field.name << " is not optional";
  }
}

// Sizes and attributes that a file might have. They are refused or accepted, without an overflow that the
// sanitizers would see.
TEST_P(Registry, SurvivesValuesOfAnyMagnitude) {
  const OpSpec& op = *GetParam();
  constexpr i32 kValues[] = {-1, 0, 1 << 16, 587202565, std::numeric_limits<i32>::max()};
  const auto infer = [&](const std::vector<std::byte>& args) {
    std::vector<std::byte> copy = args;
    try {
      op.infer(copy.data());
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
    }
  };
  const Case test = op.cases().front();
  std::vector<std::byte> args = test.args;
  const std::vector<i32*> numbers = numbers_of(op, args.data());
  for (i32* one : numbers)
    for (i32* other : numbers)
      for (const i32 value : kValues) {
        const i32 first = *one, second = *other;
        *one = *other = value;
        infer(args);
        *other = second, *one = first;
      }
}

TEST_P(Registry, CheckAcceptsTheCases) {
  const OpSpec& op = *GetParam();
  for (const Case& test : op.cases()) {
    const CheckReport report = check(program_of_case(op, test));
    EXPECT_TRUE(report.ok()) << test.name << ": " << report.faults[0].message;
  }
}

TEST_P(Registry, CheckTakesPanelsAsTheyLie) {
  const OpSpec& op = *GetParam();
  if (!std::ranges::any_of(op.fields, &Field::is_weight)) return;  // it has none
  for (const Case& test : op.cases()) {
    Program program = program_of_case(op, test);
    bool has_panels = false;
    for (Call& call : program.calls)  // strides; panels have none
      for (const Field& field : op.fields)
        if (field.is_weight()) {
          Tensor& data = field.weight(call.args[0].data()).data;
          if (data.exists()) has_panels = true, data.stride[0] = data.stride[1] = i64{1} << 45;
        }
    if (!has_panels) continue;
    const CheckReport report = check(program);
    EXPECT_TRUE(report.ok()) << test.name << ": " << report.faults[0].message;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Registry, testing::ValuesIn(all_ops()),
                         [](const auto& param) { return std::string(param.param->name); });

}  // namespace
}  // namespace heddle
