#include "heddle/ir/op_call.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/ir/cases.h"
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

// Every case of every op: the same tiles as programs have by default.
TEST(TileGrid, HasTheDefaultTiles) {
  for (const OpSpec* op : all_ops())
    for (const Case& test : op->cases())
      for (const bool gpu : {false, true}) {
        std::vector<std::byte> args = test.args;
        op->infer(args.data());
        const auto axes = op->axes(args.data(), {.gpu = gpu});
        const std::vector<TileCoord> wanted = default_tiles(axes);
        const TileGrid grid(axes);
        ASSERT_EQ(grid.tiles(), i64(wanted.size())) << op->name;
        for (size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(grid[i64(i)], wanted[i]) << op->name << " " << i;
      }
}

// However fine, tiles cover each axis once, from multiples of its unit on.
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

std::vector<std::byte> given(const OpSpec& op, const Case& test) {
  std::vector<std::byte> args = test.args;
  op.infer(args.data());
  struct Give : ArgVisitor {
    u8* address = nullptr;
    void tensor(const char*, Tensor& value, const char*, Access) override {
      if (value.rank > 0) value.buffer = 0, value.data = address += 256;
    }
    void weight(const char*, Weight& value, const char*) override {
      value.data.buffer = 0, value.data.data = address += 256;
      value.table = reinterpret_cast<const u64*>(address);
    }
    void attribute(const char*, i32&) override {}
    void attribute(const char*, float&) override {}
  } give;
  op.visit(args.data(), give);
  return args;
}

// One more of one number of the arguments, the `which`-th.
struct Change : ArgVisitor {
  int which = 0, at = 0;
  template <class T>
  void change(T& value) {
    if (at++ == which) value = T(value + 1);
  }
  void tensor(const char*, Tensor& value, const char*, Access) override {
    change(value.size[0]), change(value.stride[0]), change(value.rank);
  }
  void weight(const char*, Weight& value, const char*) override {
    change(value.data.size[0]), change(value.panel_rows), change(value.matrices);
  }
  void attribute(const char*, i32& value) override { change(value); }
  void attribute(const char*, float& value) override { change(value); }
};

TEST(CallLayout, LooksAtAllButAddresses) {
  for (const OpSpec* op : all_ops()) {
    const CallLayout layout(*op);
    std::vector<std::byte> args = given(*op, op->cases().front()), moved = args;
    struct Move : ArgVisitor {
      void tensor(const char*, Tensor& value, const char*, Access) override { value.data += 64; }
      void weight(const char*, Weight& value, const char*) override {
        value.data.data += 64, value.table += 8;
      }
      void attribute(const char*, i32&) override {}
      void attribute(const char*, float&) override {}
    } move;
    op->visit(moved.data(), move);
    EXPECT_TRUE(layout.same(args.data(), moved.data())) << op->name;
    EXPECT_EQ(layout.hash(args.data()), layout.hash(moved.data())) << op->name;
    for (int which = 0;; ++which) {
      std::vector<std::byte> changed = args;
      Change change;
      change.which = which;
      op->visit(changed.data(), change);
      if (which >= change.at) break;
      EXPECT_FALSE(layout.same(args.data(), changed.data())) << op->name << " " << which;
    }
  }
}

TEST(CheckCall, KnowsWhichOpsNeedAProgram) {
  EXPECT_TRUE(needs_step_record(get_op("attention")));
  EXPECT_TRUE(needs_step_record(get_op("embedding")));
  EXPECT_FALSE(needs_step_record(get_op("rms_norm")));
  for (const OpSpec* op : all_ops()) {
    const std::vector<std::byte> args = given(*op, op->cases().front());
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
      std::vector<std::byte> args = given(*op, op->cases().front());
      struct Empty : ArgVisitor {
        std::string_view dim;
        bool done = false;
        void tensor(const char*, Tensor& value, const char* dims, Access) override {
          int d = 0;
          for (const char* at = dims; *at && d < value.rank; ++at) {
            if (*at == ',') ++d;
            if (std::string_view(at, 1) == dim) value.size[d] = 0, done = true;
          }
        }
        void weight(const char*, Weight&, const char*) override {}
        void attribute(const char*, i32&) override {}
        void attribute(const char*, float&) override {}
      } make;
      make.dim = dim;
      op->visit(args.data(), make);
      if (!make.done) continue;
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

}  // namespace
}  // namespace heddle
