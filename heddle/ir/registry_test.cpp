#include "heddle/ir/registry.h"

#include <thread>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/ir/infer.h"

namespace heddle {
namespace {

OpSpec complete_op(std::string name) {
  OpSpec op;
  op.name = std::move(name);
  op.doc = "for tests";
  op.fields = {tensor_field("x", Access::kRead, "M, N"), tensor_field("y", Access::kWrite, "M, N")};
  op.defaults = lay_out(op.fields);
  op.infer = infer_from_dims(op.name, op.fields);
  op.axes = [](const std::byte*, const TilingTarget&) {
    return std::vector<TileAxis>{{.dim = "M", .extent = 1}};
  };
  op.flops = [](const std::byte*, const TileCoord&) { return 1.0; };
  op.body = [](const std::byte*, const TileCoord&) {};
  return op;
}

std::string refusal(OpSpec op) {
  try {
    add_op(std::move(op));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Registry, FindsWhatWasAdded) {
  const OpSpec& op = add_op(complete_op("registry_test_found"));
  EXPECT_EQ(find_op("registry_test_found"), &op);
  const auto all = all_ops();
  EXPECT_EQ(std::count(all.begin(), all.end(), &op), 1);
  EXPECT_EQ(find_op("registry_test_lost"), nullptr);
  EXPECT_THROW(get_op("registry_test_lost"), Error);
}

TEST(Registry, RefusesASecondOpOfAName) {
  add_op(complete_op("registry_test_twice"));
  EXPECT_EQ(refusal(complete_op("registry_test_twice")),
            "[registry_test_twice] is an op already; names must differ");
}

TEST(Registry, RefusesIncompleteOps) {
  const auto without = [](auto&& change) {
    OpSpec op = complete_op("half");
    change(op);
    return refusal(std::move(op));
  };
  EXPECT_EQ(without([](OpSpec& op) { op.name.clear(); }), "[op] an op has no name; must have one");
  EXPECT_EQ(without([](OpSpec& op) { op.infer = nullptr, op.axes = nullptr; }),
            "[half] lacks infer, axes; every op has them");
  EXPECT_EQ(without([](OpSpec& op) { op.body = nullptr; }),
            "[half] lacks reference (or body); every op has them");
  EXPECT_EQ(without([](OpSpec& op) { op.fields.clear(); }),
            "[half] has no fields; an op has at least one argument");
  EXPECT_EQ(without([](OpSpec& op) { op.fields[1].name = "x"; }),
            "[half] has two arguments of the name \"x\"; names must differ and not be empty");
  EXPECT_EQ(without([](OpSpec& op) { std::swap(op.fields[0], op.fields[1]); }),
            "[half] x lies at byte 0; must lie after byte 144, at a multiple of 8");
  EXPECT_EQ(without([](OpSpec& op) { op.traits.output = "z"; }),
            "[half] traits name the argument z; there is none");
  EXPECT_EQ(without([](OpSpec& op) { op.traits.epilogue = true; }),
            "[half] has a body of its own and is a part of chains; must be one or the other");
  EXPECT_EQ(without([](OpSpec& op) { op.defaults.resize(8); }),
            "[half] has 8 bytes of arguments; its fields end at 144");
  EXPECT_EQ(without([](OpSpec& op) { op.fields[0].dtypes.push_back(DType::kF8E4M3); }),
            "[half] x may be f8e4m3, which no body reads row by row; must be a matrix");
  EXPECT_EQ(find_op("half"), nullptr);
}

TEST(Registry, TakesOpsFromManyThreads) {
  constexpr int kThreads = 4, kOps = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < kOps; ++i) {
        const std::string name = "registry_test_" + std::to_string(t) + "_" + std::to_string(i);
        const OpSpec& op = add_op(complete_op(name));
        if (find_op(name) != &op) ADD_FAILURE() << name << " was not found";
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(all_ops().size(), size_t(kThreads * kOps));
}

}  // namespace
}  // namespace heddle
