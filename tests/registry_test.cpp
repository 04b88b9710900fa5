// What every op must declare, for all ops that the folders hold.
#include <algorithm>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/ir/check.h"
#include "heddle/ir/program.h"
#include "tests/support/case_program.h"

namespace heddle {
namespace {

class Registry : public testing::TestWithParam<const OpSpec*> {};

// An argument where it lies in the struct.
struct Field {
  std::string name;
  const std::byte* begin;
  size_t size;
};

struct ListFields : ArgVisitor {
  std::vector<Field> fields;
  std::vector<Tensor*> tensors;

  template <class T>
  void add(const char* name, T& value) {
    fields.push_back({name, reinterpret_cast<const std::byte*>(&value), sizeof(T)});
  }
  void tensor(const char* name, Tensor& value, const char*, Access) override {
    add(name, value);
    tensors.push_back(&value);
  }
  void weight(const char* name, Weight& value, const char*) override {
    add(name, value);
    tensors.push_back(&value.data);
  }
  void attribute(const char* name, i32& value) override { add(name, value); }
  void attribute(const char* name, float& value) override { add(name, value); }
};

// Gives weights strides, which panels do not have.
struct SpreadPanels : ArgVisitor {
  void tensor(const char*, Tensor&, const char*, Access) override {}
  void weight(const char*, Weight& value, const char*) override {
    if (value.data.exists()) value.data.stride[0] = value.data.stride[1] = i64{1} << 45;
  }
  void attribute(const char*, i32&) override {}
  void attribute(const char*, float&) override {}
};

// Sizes and attributes, of which several may have to be changed together.
struct ListNumbers : ArgVisitor {
  std::vector<i32*> numbers;

  void tensor(const char*, Tensor& value, const char*, Access) override {
    for (int d = 0; d < value.rank; ++d) numbers.push_back(&value.size[d]);
  }
  void weight(const char*, Weight& value, const char*) override {
    for (int d = 0; d < value.data.rank; ++d) numbers.push_back(&value.data.size[d]);
  }
  void attribute(const char*, i32& value) override { numbers.push_back(&value); }
  void attribute(const char*, float&) override {}
};

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
  EXPECT_GE(std::string(op.doc).size(), 8u);
  for (bool there : {op.infer != nullptr, op.axes != nullptr, op.flops != nullptr, op.reference != nullptr,
                     op.cases != nullptr})
    ASSERT_TRUE(there);
  EXPECT_FALSE(op.cases().empty());
}

TEST_P(Registry, VisitShowsEveryFieldOnceInOrder) {
  const OpSpec& op = *GetParam();
  std::vector<std::byte> args(op.args_size);
  op.construct(args.data());
  ListFields list;
  op.visit(args.data(), list);
  EXPECT_EQ(list.fields.size(), op.args_fields) << "visit and the struct differ";
  std::set<std::string> names;
  const std::byte* end = args.data();
  for (const Field& field : list.fields) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name << " comes twice";
    EXPECT_GE(field.begin, end) << field.name << " comes out of order";
    end = field.begin + field.size;
  }
  EXPECT_LE(end, args.data() + args.size());
  for (const char* name : {op.traits.input, op.traits.output})
    EXPECT_TRUE(*name == '\0' || names.contains(name)) << "traits name an argument that is none: " << name;
}

TEST_P(Registry, RefusesTensorsOfAnotherRank) {
  const OpSpec& op = *GetParam();
  const Case test = op.cases().front();
  std::vector<std::byte> args = test.args;
  ListFields list;
  op.visit(args.data(), list);
  for (size_t i = 0; i < list.tensors.size(); ++i) {
    Tensor& tensor = *list.tensors[i];
    if (tensor.rank == 0) continue;  // left out, or for infer to fill in
    const Tensor right = tensor;
    for (u8 rank = 1; rank <= kMaxRank; ++rank) {
      if (rank == right.rank) continue;
      tensor.rank = rank;
      for (int d = 0; d < rank; ++d) tensor.size[d] = 8, tensor.stride[d] = d + 1 < rank ? 8 : 1;
      std::vector<std::byte> copy = args;
      EXPECT_THROW(op.infer(copy.data()), Error) << "tensor " << i << " of rank " << int(rank);
    }
    tensor = right;
  }
}

// infer() names the op and what is wrong.
void expect_refused(const OpSpec& op, std::vector<std::byte> args, const std::string& wrong) {
  try {
    op.infer(args.data());
    ADD_FAILURE() << op.name << " takes " << wrong;
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("[" + std::string(op.name) + "]")) << message;
    EXPECT_NE(message.find(wrong), std::string::npos) << message;
  }
}

// fp8, i4, i8, i64 and bool are for ops that say so.
TEST_P(Registry, RefusesTypesByName) {
  const OpSpec& op = *GetParam();
  for (const Case& test : op.cases()) {
    std::vector<std::byte> args = test.args;
    ListFields list;
    op.visit(args.data(), list);
    for (Tensor* tensor : list.tensors) tensor->buffer = tensor->rank > 0 ? 0 : kNoBuffer;
    for (Tensor* tensor : list.tensors) {
      if (!tensor->exists()) continue;  // left out, or for infer to fill in
      const DType right = tensor->dtype;
      for (const DTypeInfo& info : kDTypes) {
        if (is_wide_float(info.type) || info.type == DType::kI32 || info.type == DType::kU8) continue;
        tensor->dtype = info.type;
        expect_refused(op, args, info.name);
      }
      tensor->dtype = right;
    }
  }
}

// Sizes and attributes as a file may have them: refused or taken, computed with in any case without an overflow, which the
// sanitizers see.
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
  ListNumbers list;
  op.visit(args.data(), list);
  for (i32* one : list.numbers)
    for (i32* other : list.numbers)
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
  for (const Case& test : op.cases()) {
    Program program = program_of_case(op, test);
    SpreadPanels spread;
    for (Call& call : program.calls) op.visit(call.args[0].data(), spread);
    const CheckReport report = check(program);
    EXPECT_TRUE(report.ok()) << test.name << ": " << report.faults[0].message;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Registry, testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& param) { return std::string(param.param->name); });

}  // namespace
}  // namespace heddle
