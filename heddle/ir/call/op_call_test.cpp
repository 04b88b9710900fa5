#include "heddle/ir/call/op_call.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/ir/cases.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/tile_grid.h"

namespace heddle {
namespace {

std::string message_of(auto&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TensorOf, TakesRowsThatLieApart) {
  const std::vector<i64> size = {2, 3}, stride = {7, 1};
  float data = 0;
  const Tensor tensor =
      tensor_of("op", "x", {.data = &data, .dtype = DType::kF16, .size = size, .stride = stride});
  EXPECT_EQ(tensor.data, reinterpret_cast<u8*>(&data));
  EXPECT_TRUE(tensor.exists());
  EXPECT_EQ(tensor.rank, 2);
  EXPECT_EQ(tensor.stride[0], 7);
  const Tensor dense = tensor_of("op", "x", {.data = &data, .size = size});
  EXPECT_EQ(dense.stride[0], 3);
  EXPECT_EQ(dense.stride[1], 1);
}

TEST(TensorOf, RefusesWhatNoOpTakes) {
  const auto refuse = [](std::vector<i64> size, std::vector<i64> stride) {
    return message_of([&] { tensor_of("op", "x", {.dtype = DType::kBf16, .size = size, .stride = stride}); });
  };
  EXPECT_EQ(refuse({}, {}), "[op] x is bf16 []; must have 1 to 4 dimensions");
  EXPECT_EQ(refuse({1, 2, 3, 4, 5}, {}), "[op] x is bf16 [1, 2, 3, 4, 5]; must have 1 to 4 dimensions");
  EXPECT_EQ(refuse({i64{1} << 32, 1}, {}),
            "[op] x is bf16 [4294967296, 1]; a dimension must have 0 to 1073741824 elements");
  EXPECT_EQ(refuse({-1}, {}), "[op] x is bf16 [-1]; a dimension must have 0 to 1073741824 elements");
  EXPECT_EQ(refuse({2, 2}, {1}), "[op] x has strides [1] for sizes [2, 2]; must be as many");
  EXPECT_EQ(refuse({2, 2}, {1, 2}),
            "[op] x has strides [1, 2]; elements of the last dimension must lie side by side (stride 1): "
            "copy it first");
}

TEST(TensorOf, KnowsWhereMemoryIs) {
  const std::vector<i64> size = {2};
  const auto at = [&](MemoryPlace is, MemoryPlace wanted) {
    return message_of([&] { tensor_of("op", "x", {.size = size, .place = is}, wanted); });
  };
  const MemoryPlace host{MemoryPlace::Kind::kHost}, first{MemoryPlace::Kind::kGpu, 0},
      second{MemoryPlace::Kind::kGpu, 1};
  EXPECT_EQ(at(second, host), "[op] x is memory of GPU 1; the call runs on the host");
  EXPECT_EQ(at(second, first), "[op] x is memory of GPU 1; the call runs on GPU 0");
  EXPECT_EQ(at(host, first), "[op] x is memory of the host; the call runs on GPU 0");
  for (const MemoryPlace& place : {host, first, MemoryPlace{}}) EXPECT_EQ(at(place, place), "no error");
  EXPECT_EQ(at({}, host), "no error");
}

// The tiles of a call by nested loops, one axis after the other.
std::vector<TileCoord> tiles_by_loops(std::span<const TileAxis> axes) {
  std::vector<TileCoord> tiles = {TileCoord{}};
  int at = 0;
  for (const TileAxis& axis : axes) {
    std::vector<TileCoord> next;
    const bool range = axis.kind == TileAxis::Kind::kRange;
    const i32 step = !range               ? 1
                     : axis.preferred > 0 ? (axis.preferred + axis.unit - 1) / axis.unit * axis.unit
                                          : axis.extent;
    for (TileCoord tile : tiles)
      for (i32 begin = 0; begin < axis.extent; begin += step) {
        tile[at] = begin;
        if (range) tile[at + 1] = std::min(begin + step, axis.extent);
        next.push_back(tile);
      }
    at += range ? 2 : 1;
    tiles = std::move(next);
  }
  return tiles;
}

// Every case of every op has these tiles, in a grid and in programs.
TEST(TileGrid, HasTheDefaultTiles) {
  for (const OpSpec* op : all_ops())
    for (const Case& test : op->cases())
      for (const bool gpu : {false, true}) {
        std::vector<std::byte> args = test.args;
        op->infer(args.data());
        const auto axes = op->axes(args.data(), {.gpu = gpu});
        const std::vector<TileCoord> wanted = tiles_by_loops(axes);
        ASSERT_EQ(default_tiles(axes), wanted) << op->name;
        const TileGrid grid(axes);
        ASSERT_EQ(grid.tiles(), i64(wanted.size())) << op->name;
        for (size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(grid[i64(i)], wanted[i]) << op->name << " " << i;
      }
}

// However fine the grid is, tiles cover each axis once and begin at multiples of its unit.
TEST(TileGrid, RefinesToTheUnit) {
  TileGrid grid(
      std::vector<TileAxis>{{.extent = 5, .preferred = 4}, {.extent = 100, .unit = 16, .preferred = 64}});
  EXPECT_EQ(grid.tiles(), 4);
  grid.refine(4, 1);
  EXPECT_EQ(grid.tiles(), 4);
  grid.refine(9, 1);
  EXPECT_GE(grid.tiles(), 9);
  grid.refine(1000, 1);
  EXPECT_EQ(grid.tiles(), 5 * 7);
  i64 elements = 0;
  for (i64 i = 0; i < grid.tiles(); ++i) {
    const TileCoord tile = grid[i];
    EXPECT_EQ(tile[2] % 16, 0);
    elements += (tile[1] - tile[0]) * (tile[3] - tile[2]);
  }
  EXPECT_EQ(elements, 500);
  TileGrid coarse(std::vector<TileAxis>{{.extent = 4}, {.extent = 4096}});
  coarse.refine(1000, 1024);
  EXPECT_EQ(coarse.tiles(), 16);
}

// The arguments of the op's first case, with addresses.
std::vector<std::byte> given(const OpSpec& op) {
  std::vector<std::byte> args = op.cases().front().args;
  op.infer(args.data());
  u64 address = 0;
  for (const Field& field : op.fields) {
    if (field.is_attribute() || field.elements(args.data()).rank == 0) continue;
    field.elements(args.data()).data = reinterpret_cast<u8*>(address += 256);
    if (field.is_weight()) field.weight(args.data()).table = reinterpret_cast<const u64*>(address);
  }
  return args;
}

// Adds one to the `which`-th number of the arguments. Returns false when there are fewer.
bool change(const OpSpec& op, std::byte* args, int which) {
  const auto more = [&which](auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    if (which-- == 0) value = std::is_same_v<Value, bool> ? Value(!value) : Value(value + 1);
  };
  for (const Field& field : op.fields) {
    if (field.is_attribute()) {
      field.with_attribute(args, more);
      continue;
    }
    Tensor& tensor = field.elements(args);
    more(tensor.size[0]), more(tensor.stride[0]), more(tensor.rank);
    if (field.is_weight()) more(field.weight(args).panel_rows), more(field.weight(args).matrices);
  }
  return which < 0;
}

TEST(CallLayout, LooksAtAllButAddresses) {
  for (const OpSpec* op : all_ops()) {
    const CallLayout layout(*op);
    const std::vector<std::byte> args = given(*op);
    std::vector<std::byte> moved = args;
    for (const Field& field : op->fields) {
      if (field.is_attribute()) continue;
      u8*& data = field.elements(moved.data()).data;
      data = reinterpret_cast<u8*>(reinterpret_cast<uintptr_t>(data) + 64);  // null if it was left out
      if (field.is_weight()) field.weight(moved.data()).table += 8;
    }
    EXPECT_TRUE(layout.same(args.data(), moved.data())) << op->name;
    EXPECT_EQ(layout.hash(args.data()), layout.hash(moved.data())) << op->name;
    for (int which = 0;; ++which) {
      std::vector<std::byte> changed = args;
      if (!change(*op, changed.data(), which)) break;
      EXPECT_FALSE(layout.same(args.data(), changed.data())) << op->name << " " << which;
    }
  }
}

TEST(CallArgs, SetsArgumentsByName) {
  const OpSpec& op = get_op("rms_norm");
  float memory[8] = {};
  const std::vector<i64> matrix = {2, 4}, row = {4};
  CallArgs args(op, {MemoryPlace::Kind::kHost});
  args.set("x", {.data = memory, .size = matrix, .place = {MemoryPlace::Kind::kHost}})
      .set("weight", {.data = memory, .size = row})
      .set("y", {.data = memory, .size = matrix})
      .set("eps", 0.5);
  EXPECT_FALSE(check_call(op, args.bytes()).is_empty);
  EXPECT_EQ(find_field(op.fields, "x")->tensor(args.bytes()).size[1], 4);
  EXPECT_EQ(std::get<double>(get_attribute(*find_field(op.fields, "eps"), args.bytes())), 0.5);
  EXPECT_EQ(message_of([&] { args.set("gamma", {.data = memory, .size = row}); }),
            "[rms_norm] has no tensor gamma; it has x, weight, y");
  EXPECT_EQ(message_of([&] { args.set("epsilon", 1.0); }), "[rms_norm] has no attribute epsilon; it has eps");
  EXPECT_EQ(message_of([&] {
              args.set("x", {.size = row, .place = {MemoryPlace::Kind::kGpu, 1}});
            }),
            "[rms_norm] x is memory of GPU 1; the call runs on the host");
  const CallArgs none(op);
  EXPECT_EQ(message_of([&] { check_call(op, none.bytes()); }),
            "[rms_norm] x is missing; the op reads x [M, D]");
}

TEST(CallArgs, TakesMatricesEitherWay) {
  const OpSpec& op = get_op("matmul");
  float memory[64] = {};
  const std::vector<i64> a = {2, 3}, b = {3, 5}, y = {2, 5}, columns = {1, 4}, neither = {2, 8};
  CallArgs args(op);
  args.set("a", {.data = memory, .size = a}).set("y", {.data = memory, .size = y});
  args.set("b", {.data = memory, .size = b, .stride = columns});
  const Tensor& stored = find_field(op.fields, "b")->tensor(args.bytes());
  const auto transposed = [&] {
    return std::get<bool>(get_attribute(*find_field(op.fields, "b.transposed"), args.bytes()));
  };
  EXPECT_TRUE(transposed());
  EXPECT_EQ(stored.size[0], 5);
  EXPECT_EQ(stored.stride[0], 4);
  EXPECT_FALSE(check_call(op, args.bytes()).is_empty);
  args.set("b", {.data = memory, .size = b});
  EXPECT_FALSE(transposed());
  EXPECT_EQ(stored.size[0], 3);
  EXPECT_NE(message_of([&] { args.set("b", {.data = memory, .size = b, .stride = neither}); }), "no error");
}

TEST(Regions, OfI4AreWholeBytes) {
  Tensor codes{.buffer = 1, .dtype = DType::kI4, .rank = 2, .size = {6, 9}, .stride = {10, 1}};
  const std::array<std::array<i32, 2>, 2> part = {{{2, 5}, {4, 9}}};
  EXPECT_EQ(region_of(codes, Access::kRead, part),
            (Region{.buffer = 1, .offset = 12, .run = 3, .count = {1, 3}, .stride = {0, 5}}));
  EXPECT_EQ(whole(codes, Access::kRead).end(), 30);
}

TEST(CheckCall, KnowsWhichOpsNeedAProgram) {
  EXPECT_TRUE(needs_step_record(get_op("attention")));
  EXPECT_TRUE(needs_step_record(get_op("embedding")));
  EXPECT_FALSE(needs_step_record(get_op("rms_norm")));
  for (const OpSpec* op : all_ops()) {
    const std::vector<std::byte> args = given(*op);
    if (needs_step_record(*op))
      EXPECT_NE(message_of([&] { check_call(*op, args.data()); }).find("cannot be called by itself"),
                std::string::npos);
    else
      EXPECT_FALSE(check_call(*op, args.data()).is_empty) << op->name;
  }
}

// Every op with each of its dimensions empty: nothing to run, or an error that says why.
TEST(CheckCall, EmptyTensorsAreNoFault) {
  int empty = 0;
  for (const OpSpec* op : all_ops()) {
    if (needs_step_record(*op)) continue;
    for (const char* dim : {"M", "T"}) {
      std::vector<std::byte> args = given(*op);
      bool done = false;
      for (const Field& field : op->fields)
        for (size_t d = 0; field.is_tensor() && d < field.tensor(args.data()).rank; ++d)
          if (field.dims[d].name == dim) field.tensor(args.data()).size[d] = 0, done = true;
      if (!done) continue;
      std::string message = "no error";
      try {
        EXPECT_TRUE(check_call(*op, args.data()).is_empty) << op->name;
        ++empty;
      } catch (const Error& error) {
        message = error.what();
        EXPECT_NE(message.find(std::string("[") + op->name + "]"), std::string::npos) << message;
      }
    }
  }
  EXPECT_GE(empty, 15);
}

// Outputs that a caller has not given get their shapes from empty inputs too.
TEST(CheckCall, OutputsOfEmptyInputsHaveShapes) {
  const auto call_of = [](const char* name, std::vector<std::vector<i64>> inputs) {
    const OpSpec& op = get_op(name);
    CallArgs args(op);
    size_t next = 0;
    for (const Field& field : op.fields)
      if (field.is_tensor() && !field.writes() && next < inputs.size())
        args.set(field.name, {.size = inputs[next++]});
    return check_call(op, args.bytes());
  };
  const auto shape_of = [&](const char* name, const std::vector<std::vector<i64>>& inputs) {
    const CheckedCall call = call_of(name, inputs);
    EXPECT_TRUE(call.is_empty);
    EXPECT_TRUE(call.of_nothing.empty());
    std::string shape;
    for (const Field& field : get_op(name).fields)
      if (field.writes() && !field.optional) shape += shape_text(field.tensor(call.args.data()));
    return shape;
  };
  EXPECT_EQ(shape_of("rms_norm", {{0, 8}, {8}}), "f32 [0, 8]");
  EXPECT_EQ(shape_of("gated_activation", {{3, 0}}), "f32 [3, 0]");
  EXPECT_EQ(shape_of("transpose", {{3, 0}}), "f32 [0, 3]");
  EXPECT_EQ(shape_of("argmax", {{0, 5}}), "i32 [0]");
  // A sum over no rows has elements, and no body writes them.
  CheckedCall sum = call_of("column_sum", {{0, 4}});
  EXPECT_EQ(sum.of_nothing, "y is f32 [4]");
  EXPECT_NE(message_of([&] { sum.require_outputs(get_op("column_sum")); }).find("must be empty too"),
            std::string::npos);
  EXPECT_NE(message_of([&] { call_of("reduce", {{3, 0}}); }).find("must be empty too"), std::string::npos);
}

}  // namespace
}  // namespace heddle
