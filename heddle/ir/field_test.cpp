#include "heddle/ir/field.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/ir/infer.h"
#include "heddle/ir/op.h"

namespace heddle {
namespace {

constexpr const char* kKinds = "soft, hard";

struct Everything {
  Tensor x;     // [M, 2N]
  Weight w;     // [K, N]
  Matrix b;     // [N, M]
  Tensor bias;  // optional [N]
  i64 seed = 7;
  Tensor y;      // [M, copies, N]
  Tensor index;  // optional i32 [M]
  i32 copies = 3;
  float eps = 0.5f;
  bool exact = true;
  i32 kind = 1;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, 2N");
    v.weight("w", s.w, "K, N");
    v.matrix("b", s.b, "N, M");
    v.optional_read("bias", s.bias, "N");
    v.attribute("seed", s.seed);
    v.write("y", s.y, "M, copies, N", "f32 | f16");
    v.optional_write("index", s.index, "M", "i32");
    v.attribute("copies", s.copies);
    v.attribute("eps", s.eps);
    v.attribute("exact", s.exact);
    v.choice("kind", s.kind, kKinds);
  }
};

const OpSpec& everything() {
  static const OpSpec op = op_of<Everything>("everything", "all kinds of fields");
  return op;
}
const Field& field(const char* name) {
  return *find_field(everything().fields, name);
}

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Fields, MakeFourOfAMatrix) {
  const Field& b = field("b");
  EXPECT_TRUE(b.is_tensor() && b.is_matrix() && b.is_whole());
  EXPECT_EQ(b.member, "b.data");
  EXPECT_TRUE(field("b.scales").optional && field("b.zeros").optional);
  EXPECT_FALSE(field("b.scales").is_whole() || field("b.scales").is_matrix());
  EXPECT_EQ(field("b.transposed").type, AttributeType::kBool);
  Everything a;
  auto* args = reinterpret_cast<std::byte*>(&a);
  EXPECT_EQ(b.dims_of(args), (std::vector<FieldDim>{{"N"}, {"M"}}));
  set_attribute("everything", field("b.transposed"), args, true);
  EXPECT_TRUE(a.b.transposed);
  EXPECT_EQ(b.dims_of(args), (std::vector<FieldDim>{{"M"}, {"N"}}));
}

TEST(Fields, SayWhatVisitShows) {
  const OpSpec& op = everything();
  ASSERT_EQ(std::ranges::count_if(op.fields, &Field::is_whole), op.args_fields);
  EXPECT_EQ(op.args_size(), sizeof(Everything));
  EXPECT_EQ(field("x").dims, (std::vector<FieldDim>{{"M"}, {"N", 2}}));
  EXPECT_EQ(field("y").dims[1], (FieldDim{"copies", 1, true}));
  EXPECT_TRUE(field("y").writes());
  EXPECT_FALSE(field("y").optional);
  EXPECT_TRUE(field("bias").optional);
  EXPECT_TRUE(field("index").optional && field("index").writes());
  EXPECT_EQ(field("index").dtypes, std::vector{DType::kI32});
  EXPECT_EQ(field("x").dtypes, (std::vector{DType::kF32, DType::kF16, DType::kBf16}));
  EXPECT_EQ(field("kind").choices, (std::vector<std::string>{"soft", "hard"}));
  for (const Field& f : op.fields) EXPECT_EQ(f.offset % f.alignment(), 0u) << f.name;
}

TEST(Fields, ReachTheArguments) {
  std::vector<std::byte> args = everything().defaults;
  auto& a = as<Everything>(args.data());
  EXPECT_EQ(&field("x").tensor(args.data()), &a.x);
  EXPECT_EQ(&field("w").weight(args.data()), &a.w);
  EXPECT_EQ(&field("w").elements(args.data()), &a.w.data);
  field("eps").with_attribute(args.data(), [](auto& value) { value = {}; });
  EXPECT_EQ(a.eps, 0);
  EXPECT_THROW(field("x").weight(args.data()), Error);
  EXPECT_THROW(field("eps").tensor(args.data()), Error);
}

TEST(Fields, AttributesAreSetAndShownByTypeAndName) {
  std::vector<std::byte> args = everything().defaults;
  const auto& a = as<Everything>(args.data());
  EXPECT_EQ(attribute_text(field("kind"), args.data()), "hard");
  EXPECT_EQ(attribute_text(field("exact"), args.data()), "true");
  EXPECT_EQ(attribute_text(field("seed"), args.data()), "7");
  for (const auto& [name, text] : {std::pair{"kind", "soft"},
                                   {"exact", "false"},
                                   {"seed", "123456789012"},
                                   {"copies", "-2"},
                                   {"eps", "1e-5"}})
    parse_attribute("everything", field(name), args.data(), text);
  EXPECT_EQ(a.kind, 0);
  EXPECT_EQ(a.exact, false);
  EXPECT_EQ(a.seed, 123456789012);
  EXPECT_EQ(a.copies, -2);
  EXPECT_EQ(a.eps, 1e-5f);
  set_attribute("everything", field("eps"), args.data(), i64{2});
  EXPECT_EQ(std::get<double>(get_attribute(field("eps"), args.data())), 2);
  EXPECT_EQ(std::get<std::string>(get_attribute(field("kind"), args.data())), "soft");
}

TEST(Fields, RefuseOtherValues) {
  std::vector<std::byte> args = everything().defaults;
  const auto parse = [&](const char* name, const char* text) {
    return message([&] { parse_attribute("everything", field(name), args.data(), text); });
  };
  EXPECT_EQ(parse("kind", "firm"), "[everything] kind = \"firm\"; must be one of soft, hard");
  EXPECT_EQ(parse("kind", "1"), "[everything] kind = \"1\"; must be one of soft, hard");
  EXPECT_EQ(parse("copies", "5000000000"),
            "[everything] copies = 5000000000; must be a whole number of 32 bits");
  EXPECT_EQ(parse("exact", "1"), "[everything] exact = 1; must be true or false");
  EXPECT_EQ(parse("eps", "small"), "[everything] eps = \"small\"; must be a number");
  EXPECT_EQ(parse("eps", "1e300"), "[everything] eps = 1e+300; must be a number");
  EXPECT_EQ(parse("seed", "1.5"), "[everything] seed = \"1.5\"; must be a whole number of 64 bits");
  EXPECT_EQ(args, everything().defaults);
}

TEST(Fields, RefuseDeclarationsThatMeanNothing) {
  EXPECT_THROW(parse_dims("M, 2"), Error);
  EXPECT_THROW(parse_dims("0N"), Error);
  EXPECT_THROW(parse_dtypes("f33"), Error);
  EXPECT_THROW(parse_dtypes(""), Error);
}

TEST(Fields, LieAsACompilerPutsThem) {
  std::vector<Field> fields = everything().fields;
  for (Field& f : fields) f.offset = 0;
  EXPECT_EQ(lay_out(fields).size(), sizeof(Everything));
  for (const Field& f : fields) EXPECT_EQ(f.offset, field(f.name.c_str()).offset) << f.name;
}

Tensor shaped(DType dtype, std::initializer_list<i32> shape) {
  Tensor tensor;
  tensor.dtype = dtype;
  for (i32 size : shape) tensor.size[tensor.rank++] = size;
  return tensor;
}

class InferFromDims : public testing::Test {
 protected:
  InferFromDims() {
    a.x = shaped(DType::kF16, {5, 8});
    a.w.data = shaped(DType::kF32, {6, 4});
    a.b = {.data = shaped(DType::kI8, {5, 4}), .transposed = true};
  }
  std::string infer() {
    return message(
        [&] { infer_from_dims("everything", everything().fields)(reinterpret_cast<std::byte*>(&a)); });
  }
  Everything a;
};

TEST_F(InferFromDims, GivesOutputsTheirShape) {
  EXPECT_EQ(infer(), "no error");
  EXPECT_EQ(a.y.dtype, DType::kF16);
  EXPECT_EQ(a.y.rank, 3);
  EXPECT_EQ(std::vector(a.y.size, a.y.size + 3), (std::vector<i32>{5, 3, 4}));
  EXPECT_EQ(a.y.stride[0], 12);
  EXPECT_EQ(a.index.rank, 0) << "an optional output that nobody wants";
  a.x.dtype = DType::kBf16, a.y = {};
  EXPECT_EQ(infer(), "no error");
  EXPECT_EQ(a.y.dtype, DType::kF32) << "the first that y may have, since it cannot have x's";
}

TEST_F(InferFromDims, RefusesShapesThatDoNotFit) {
  a.w.data.size[1] = 5;
  EXPECT_EQ(infer(), "[everything] w is f32 [6, 5]; must be [K, N] with N = 4 as x has it");
  a.w.data.size[1] = 4, a.x.size[1] = 9;
  EXPECT_NE(infer(), "no error");
  a.x.size[1] = 8, a.copies = 0;
  EXPECT_EQ(infer(), "[everything] copies = 0; must be 1 to 2147483647");
  a.copies = 3, a.bias = shaped(DType::kI32, {4});
  EXPECT_EQ(infer(), "[everything] bias is i32 [4]; must be f32 or f16 or bf16");
  a.bias = {}, a.b.transposed = false;
  EXPECT_EQ(infer(), "[everything] b is i8 [5, 4]; must be [N, M] with N = 4 as x has it");
  a.b.transposed = true, a.x = {};
  EXPECT_EQ(infer(), "[everything] x is left out; must be given");
}

TEST(TensorExists, ByItsBufferOrItsAddress) {
  Tensor tensor;
  EXPECT_FALSE(tensor.exists());
  tensor.buffer = 0;
  EXPECT_TRUE(tensor.exists()) << "in a program";
  u8 byte = 0;
  tensor.buffer = kNoBuffer, tensor.data = &byte;
  EXPECT_TRUE(tensor.exists()) << "of a call without buffers";
}

}  // namespace
}  // namespace heddle
