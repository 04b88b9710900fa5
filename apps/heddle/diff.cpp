// heddle diff: runs the same steps on two executors and compares every buffer, op by op.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/input.h"
#include "heddle/base/error.h"
#include "heddle/base/float16.h"

namespace heddle {
namespace {

struct DiffFlags {
  EngineFlags engine;
  std::string a = "reference", b = "threads";
  std::string tokens = "1,2,3,4,5";
  double bound = 1e-3;
};

// The tensors that a node writes, by name of its buffer.
struct Written : ArgVisitor {
  std::vector<Tensor> tensors;
  void tensor(const char*, Tensor& value, const char*, Access access) override {
    if (access == Access::kWrite && value.exists()) tensors.push_back(value);
  }
  void weight(const char*, Weight&, const char*) override {}
  void attribute(const char*, i32&) override {}
  void attribute(const char*, float&) override {}
};

struct Difference {
  double error = 0, largest = 0;  // of |a - b|, and of |a|
  size_t values = 0;
};

double at(std::span<const std::byte> bytes, DType dtype, size_t i) {
  float value;
  uint16_t half;
  if (dtype == DType::kF32) {
    std::memcpy(&value, bytes.data() + 4 * i, 4);
    return double(value);
  }
  std::memcpy(&half, bytes.data() + 2 * i, 2);
  return double(dtype == DType::kBf16 ? bf16_to_float(half) : f16_to_float(half));
}

Difference compare(std::span<const std::byte> a, std::span<const std::byte> b, DType dtype) {
  Difference result;
  result.values = a.size() / size_t(size_of(dtype));
  for (size_t i = 0; i < result.values; ++i) {
    const double x = at(a, dtype, i), y = at(b, dtype, i);
    if (std::isnan(x) && std::isnan(y)) continue;
    const double error = std::isnan(x - y) ? INFINITY : std::abs(x - y);
    result.error = std::max(result.error, error);
    if (std::isfinite(x)) result.largest = std::max(result.largest, std::abs(x));
  }
  return result;
}

std::unique_ptr<Engine> run_on(const DiffFlags& flags, const std::string& executor,
                               std::span<const i32> tokens) {
  EngineOptions options = flags.engine.options();
  options.executor = executor;
  options.keep_buffers = true;
  auto engine = load_engine(flags.engine, options);
  const SequenceId sequence = engine->open({});
  const StepRequest request{sequence, tokens, true};
  engine->step(std::span(&request, 1));
  return engine;
}

void run(const DiffFlags& flags) {
  const std::vector<i32> tokens = parse_tokens(flags.tokens, "--tokens");
  auto a = run_on(flags, flags.a, tokens), b = run_on(flags, flags.b, tokens);
  const i32 rows = i32(tokens.size());
  const Program &left = a->program(rows, 1), &right = b->program(rows, 1);
  require(left.calls.size() == right.calls.size(),
          "[diff] the programs have {} and {} calls; they must be the same", left.calls.size(),
          right.calls.size());
  std::printf("%-44s %12s %12s\n", "node", "max |a - b|", "max |a|");
  std::string first;
  for (const Call& call : left.calls) {
    Node node = left.node_of(call);
    Written written;
    for (Part& part : node.parts) part.op->visit(part.args.data(), written);
    for (const Tensor& tensor : written.tensors) {
      if (!is_float(tensor.dtype)) continue;
      const Difference d =
          compare(a->buffer(left, tensor.buffer), b->buffer(right, tensor.buffer), tensor.dtype);
      const bool bad = d.error > flags.bound * (1 + d.largest);
      std::printf("%-44s %12.3g %12.3g%s\n", left.buffers[tensor.buffer].info.name.c_str(), d.error,
                  d.largest, bad ? "  <- out of bounds" : "");
      if (bad && first.empty()) first = node.name;
    }
  }
  if (!first.empty())
    fail(ErrorCode::kInternal, "[diff] {} is the first op out of bounds ({} x (1 + max |a|))", first,
         flags.bound);
  std::printf("%s and %s agree within %g x (1 + max |a|)\n", flags.a.c_str(), flags.b.c_str(), flags.bound);
}

}  // namespace

void add_diff(CLI::App& app) {
  auto flags = std::make_shared<DiffFlags>();
  Command command(app, "diff", "Compare two executors, op by op");
  flags->engine.add_program_to(command, "folder with config.json and *.safetensors");
  flags->engine.add_threads_to(command);
  command.argument("--a", &flags->a, "one executor");
  command.argument("--b", &flags->b, "the other");
  command.argument("--tokens", &flags->tokens, "token ids of the step, separated by commas");
  command.argument("--bound", &flags->bound, "largest difference, relative to 1 + the largest value");
  command.footer(
      "Both run the same step; every tensor that a call writes is compared, in the order of the calls.\n"
      "Fails with the first op that is out of bounds.\n"
      "Example: heddle diff models/storyteller --tokens 5,6,7 --workers 4");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
