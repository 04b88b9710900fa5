// Runs an op of its own: by itself, and as a part of a program that is proved and whose accesses are compared with what
// the op declares.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <soft_clip/soft_clip.h>

#include "heddle/engine/builtins.h"
#include "heddle/engine/memory_calls.h"
#include "heddle/ir/call/op_call.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/softmax/softmax.h"
#include "heddle/schedule/schedule.h"

namespace heddle {

const OpSpec& soft_clip_op();

namespace {

constexpr i32 kRows = 33, kColumns = 40;

Tensor over(std::vector<float>& values, Sizes shape) {
  Tensor tensor = dense(DType::kF32, shape);
  tensor.data = reinterpret_cast<u8*>(values.data());
  return tensor;
}

template <class Args>
MemoryCall call_of(const char* op, const Args& args) {
  MemoryCall call{&get_op(op), std::vector<std::byte>(sizeof(Args))};
  new (call.args.data()) Args(args);
  return call;
}

double largest_error(const std::vector<float>& got, const std::vector<double>& wanted) {
  double error = 0;
  for (size_t i = 0; i < got.size(); ++i) error = std::max(error, std::fabs(double(got[i]) - wanted[i]));
  return error;
}

int run() {
  register_builtins();
  add_op(&soft_clip_op());
  std::vector<float> x(kRows * kColumns), shift(kColumns, 0.25f), y(x.size()), z(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 17) / 4 - 2;
  const SoftClip clip{.x = over(x, {kRows, kColumns}),
                      .y = over(y, {kRows, kColumns}),
                      .shift = over(shift, {kColumns}),
                      .limit = 1};
  std::vector<double> wanted;
  for (const float value : x) {
    const double v = double(value) + 0.25, inside = std::clamp(v, -1.0, 1.0);
    wanted.push_back(inside + double(clip.slope) * (v - inside));
  }
  for (const Backend* backend : all_backends())
    if (backend->name == std::string("cpu"))
      backend->op_calls().run(soft_clip_op(), reinterpret_cast<const std::byte*>(&clip), {});
  double error = largest_error(y, wanted);
  std::printf("soft_clip by itself: error %.1e\n", error);

  const std::vector<MemoryCall> calls = {call_of("soft_clip", clip),
                                         call_of("softmax", Softmax{clip.y, over(z, {kRows, kColumns})})};
  const MemoryGraph graph = graph_of_calls(calls);
  ExecutorOptions options;
  options.threads = 2;
  for (const char* executor : {"threads", "reference"}) {
    std::fill(y.begin(), y.end(), 0.0f);
    const Program program = compile_calls(graph, executor, kDefaultScheduler, 2);
    get_executor(executor).create(program, graph.memory, options)->run(1);
    double sum = 0;
    for (const float value : z) sum += double(value);
    error = std::max({error, largest_error(y, wanted), std::fabs(sum / kRows - 1)});
    std::printf("with softmax, on %s: error %.1e\n", executor, error);
  }
  return error < 1e-6 ? 0 : 1;
}

}  // namespace
}  // namespace heddle

int main() {
  try {
    return heddle::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
