// Speed of the op matmul on a GPU: a line for each shape, with the order of both matrices (n: as they are named, t:
// transposed), the best time of a call, and TFLOP/s.
//   bench_matmul [NAME]    only shapes whose names contain NAME
#include "heddle/ops/matmul/matmul.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/executors/op_call.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/base/element.h"
#include "heddle/engine/builtins.h"
#include "heddle/ir/product.h"
#include "heddle/ir/registry.h"

namespace heddle {
namespace {

struct Shape {
  const char* name;
  i32 m, n, k;
  DType a, b;
  const char* order;
};
constexpr Shape kShapes[] = {
    {"bf16", 4096, 4096, 4096, DType::kBf16, DType::kBf16, "nn"},
    {"bf16", 4096, 4096, 4096, DType::kBf16, DType::kBf16, "nt"},
    {"bf16", 4096, 4096, 4096, DType::kBf16, DType::kBf16, "tn"},
    {"bf16", 4096, 4096, 4096, DType::kBf16, DType::kBf16, "tt"},
    {"f32", 2048, 2048, 2048, DType::kF32, DType::kF32, "nt"},
    {"i8 weight", 4096, 4096, 4096, DType::kBf16, DType::kI8, "nt"},
    {"i8 weight, 16 rows", 16, 4096, 4096, DType::kBf16, DType::kI8, "nt"},
};

// A tensor in memory of its own, with values that no product skips.
class Operand {
 public:
  Operand(DType type, i32 rows, i32 cols) {
    std::mt19937 random(1);
    std::vector<std::byte> values(size_t(bytes_of(type, i64(rows) * cols)));
    for (i64 i = 0; i < i64(rows) * cols; ++i)
      store_number(type, values.data(), i,
                   type == DType::kI8 ? i64(random() % 255) - 127 : double(random() % 97) / 97);
    memory_ = cuda::DeviceBuffer(values.size(), cuda::Device::at(0));
    const cuda::Stream stream(cuda::Device::at(0));
    cuda::upload(memory_.data(), values.data(), values.size(), stream);
    stream.synchronize();
    const i64 size[] = {rows, cols};
    tensor = tensor_of("bench", "tensor", {.data = memory_.data(), .dtype = type, .size = size});
  }
  Tensor tensor;

 private:
  cuda::DeviceBuffer memory_;
};

// The best of several portions of calls, in milliseconds of one.
double time_of(const Matmul& args) {
  constexpr int kPortions = 10, kCalls = 10;
  const OpSpec& op = get_op("matmul");
  const auto* bytes = reinterpret_cast<const std::byte*>(&args);
  const cuda::Device& device = cuda::Device::at(0);
  const cuda::Stream stream(device);
  OpCaller& caller = cuda::op_calls();
  const CallNeeds needs = caller.needs(op, bytes, {.stream = stream.handle()});
  const cuda::DeviceBuffer workspace(size_t(std::max<i64>(needs.workspace_bytes, 1)), device);
  const CallSite site{
      .stream = stream.handle(), .workspace = workspace.data(), .workspace_bytes = needs.workspace_bytes};
  caller.run(op, bytes, site);
  stream.synchronize();
  double best = 1e30;
  for (int portion = 0; portion < kPortions; ++portion) {
    cuda::Event begin(device), end(device);
    begin.record(stream);
    for (int call = 0; call < kCalls; ++call) caller.run(op, bytes, site);
    end.record(stream);
    stream.synchronize();
    best = std::min(best, end.elapsed_ms(begin) / kCalls);
  }
  return best;
}

void measure(const Shape& shape) {
  const bool a_transposed = shape.order[0] == 't', b_transposed = shape.order[1] == 't';
  const Operand a(shape.a, a_transposed ? shape.k : shape.m, a_transposed ? shape.m : shape.k);
  const Operand b(shape.b, b_transposed ? shape.n : shape.k, b_transposed ? shape.k : shape.n);
  const Operand scales(DType::kF32, b.tensor.size[0], 1);
  Matmul args{.a = {.data = a.tensor, .transposed = a_transposed},
              .b = {.data = b.tensor, .transposed = b_transposed}};
  if (shape.b == DType::kI8) args.b.scales = scales.tensor;
  const Operand y(product_dtype(args.a, args.b), shape.m, shape.n);
  args.y = y.tensor;
  const double ms = time_of(args), flops = 2.0 * shape.m * shape.n * shape.k;
  fmt::print("{:20} {} x {} x {} {}  {:8.4f} ms  {:7.1f} TFLOP/s\n", shape.name, shape.m, shape.n, shape.k,
             shape.order, ms, flops / ms / 1e9);
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  register_builtins();
  if (const std::string why = cuda::why_unavailable() + cuda::why_no_compiler(); !why.empty()) {
    fmt::print(stderr, "no GPU: {}\n", why);
    return 1;
  }
  const cuda::ContextScope scope(cuda::Device::at(0));
  for (const Shape& shape : kShapes)
    if (argc < 2 || std::string(shape.name).find(argv[1]) != std::string::npos) measure(shape);
  return 0;
}
