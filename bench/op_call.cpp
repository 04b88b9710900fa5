// The cost of a single op call on a CPU besides the op's own work. Rows of the gate.
//   OP of a row: a call of one small row; of no rows: the look-up alone; its tile: the work alone.
#include "heddle/backend/cpu/op_call.h"

#include <string>
#include <vector>

#include "bench/rows.h"
#include "heddle/backend/cpu/simd.h"
#include "heddle/engine/builtins.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/tile_grid.h"
#include "heddle/ops/add/add.h"
#include "heddle/ops/rms_norm/rms_norm.h"

namespace heddle {
namespace {

constexpr i64 kColumns = 64;
constexpr int kCalls = 100'000;

Tensor tensor(float* data, std::vector<i64> size) {
  return tensor_of("bench", "tensor", {.data = data, .dtype = DType::kF32, .size = size});
}
// Arguments for `rows` rows in memory of three times that size.
RmsNorm args_of(RmsNorm, float* memory, i64 rows) {
  return {.x = tensor(memory, {rows, kColumns}),
          .weight = tensor(memory + kColumns, {kColumns}),
          .y = tensor(memory + 2 * kColumns, {rows, kColumns})};
}
Add args_of(Add, float* memory, i64 rows) {
  return {.a = tensor(memory, {rows, kColumns}),
          .b = tensor(memory + kColumns, {rows, kColumns}),
          .y = tensor(memory + 2 * kColumns, {rows, kColumns})};
}

template <class Args>
void measure(bench::Rows& rows, const std::string& name) {
  const OpSpec& op = get_op(name);
  std::vector<float> memory(3 * kColumns, 1.0f);
  const auto call = [&](const char* what, i64 number) {
    const Args args = args_of(Args(), memory.data(), number);
    const auto* bytes = reinterpret_cast<const std::byte*>(&args);
    OpCaller& caller = cpu_op_calls();
    rows.measure("100,000 calls of " + name + what, [&] {
      for (int i = 0; i < kCalls; ++i) caller.run(op, bytes, {});
    });
  };
  call(" of a row", 1);
  call(" of no rows", 0);
  const Args args = args_of(Args(), memory.data(), 1);
  const auto* bytes = reinterpret_cast<const std::byte*>(&args);
  const TileGrid grid(op.axes(bytes, TilingTarget{}));
  const OpTiles& tiles = op_tiles();
  const void* body = tiles.body_of(op.name);
  rows.measure("100,000 tiles of " + name, [&] {
    for (int i = 0; i < kCalls; ++i) tiles.run(body, bytes, grid[0]);
  });
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  register_builtins();
  bench::Rows rows(argc, argv);
  measure<RmsNorm>(rows, "rms_norm");
  measure<Add>(rows, "add");
}
