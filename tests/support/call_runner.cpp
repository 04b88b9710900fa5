#include "tests/support/call_runner.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "heddle/backend/cuda/runtime/stream.h"
#include "tests/support/case_memory.h"
#include "tests/support/space_mirror.h"

namespace heddle {
namespace {

// Puts the rows of tensors apart.
void spread(const OpSpec& op, std::byte* args, CallLayoutKind kind) {
  for (const Field& field : op.fields) {
    if (!field.is_tensor()) continue;
    Tensor& value = field.tensor(args);
    if (value.rank == 0) continue;
    i64 stride = 1;
    for (int d = value.rank - 1; d >= 0; --d) {
      value.stride[d] = stride;
      stride *= value.size[d];
      if (d == value.rank - 1) stride += value.dtype == DType::kI4 ? 4 : 3;  // rows of i4 are whole bytes
    }
    if (kind == CallLayoutKind::kOffset) value.offset = size_of(value.dtype);
  }
}

void bind(const OpSpec& op, std::byte* args, const Memory& memory) {
  for (const Field& field : op.fields) {
    if (field.is_attribute()) continue;
    Tensor& value = field.elements(args);
    if (!value.exists()) continue;
    value.data = reinterpret_cast<u8*>(memory.base[value.buffer]) + value.offset;
    if (field.is_weight()) field.weight(args).table = memory.panels[value.buffer];
  }
}

// Memory of the case's space, or none.
class Workspace {
 public:
  Workspace(MemorySpace* space, i64 bytes) : space_(space) {
    if (space && bytes > 0) address_ = space->allocate(size_t(bytes));
  }
  ~Workspace() {
    if (address_) space_->release(address_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  std::byte* address() const { return address_; }

 private:
  MemorySpace* space_;
  std::byte* address_ = nullptr;
};

std::string compare(const Output& output, std::span<const double> got, std::span<const double> wanted,
                    double bound, auto&& is_right) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (is_right(got[i], wanted[i])) continue;
    const double error = std::abs(got[i] - wanted[i]) / (1 + std::abs(wanted[i]));
    if (!(error <= bound))
      return fmt::format("{}[{}] is {}; the reference has {}, error {:.3g} above {:.3g}", output.name, i,
                         got[i], wanted[i], error, bound);
  }
  return "";
}

// All memory of a case, but for the elements of its outputs.
std::vector<std::byte> rest_of(CaseMemory& memory, const std::vector<Output>& outputs) {
  for (const Output& output : outputs)
    memory.write(output.tensor, std::vector<double>(size_t(elements(output.tensor))));
  std::vector<std::byte> all;
  for (u32 b = 0; b < memory.buffers.size(); ++b)
    all.insert(all.end(), memory.allocation(b).begin(), memory.allocation(b).end());
  return all;
}

CallNeeds call(const OpSpec& op, const std::vector<std::byte>& args, const Backend& backend,
               CaseMemory& memory, const CallOptions& options) {
  MemorySpace* const space = backend.executors[0].space ? &backend.executors[0].space(0) : nullptr;
  std::optional<SpaceMirror> mirror;
  if (space) mirror.emplace(memory, *space);
  std::vector<std::byte> bound = args;
  bind(op, bound.data(), mirror ? mirror->memory() : memory.memory);
  OpCaller& caller = backend.op_calls();
  std::optional<cuda::Stream> stream;
  if (caller.memory() == MemoryPlace::Kind::kGpu) stream.emplace(cuda::Device::at(0));
  CallSite site{
      .stream = stream ? stream->handle() : nullptr, .threads = options.threads, .config = options.config};
  const CallNeeds needs = caller.needs(op, bound.data(), site);
  site.workspace_bytes = needs.workspace_bytes;
  const Workspace workspace(space, site.workspace_bytes);
  site.workspace = workspace.address();
  caller.run(op, bound.data(), site);
  if (stream) stream->synchronize();
  if (mirror) mirror->fetch();
  return needs;
}

}  // namespace

const char* name(CallLayoutKind kind) {
  return kind == CallLayoutKind::kDense ? "dense" : kind == CallLayoutKind::kStrided ? "strided" : "offset";
}

std::string run_call(const OpSpec& op, const Case& test, const Backend& backend, CallLayoutKind kind,
                     int threads) {
  return run_call(op, test, backend, {.kind = kind, .threads = threads}).problem;
}

CallResult run_call(const OpSpec& op, const Case& test, const Backend& backend, const CallOptions& options) {
  CaseMemory memory;
  std::vector<std::byte> args = test.args;
  op.infer(args.data());
  if (options.kind != CallLayoutKind::kDense) spread(op, args.data(), options.kind);
  const std::vector<Output> outputs = allocate(op, args.data(), memory);
  if (test.prepare) test.prepare(args.data(), memory);
  const bool is_planted = !options.planted.field.empty();
  if (is_planted) plant(op, args.data(), memory, options.planted);
  std::vector<std::vector<double>> poison, wanted;
  for (const Output& output : outputs) poison.push_back(memory.read(output.tensor));
  op.reference(args.data(), memory);
  for (const Output& output : outputs) wanted.push_back(memory.read(output.tensor));
  const std::vector<std::byte> rest = rest_of(memory, outputs);
  for (size_t o = 0; o < outputs.size(); ++o) memory.write(outputs[o].tensor, poison[o]);
  CallResult result;
  result.needs = call(op, args, backend, memory, options);
  for (size_t o = 0; o < outputs.size(); ++o) {
    const std::vector<double> got = memory.read(outputs[o].tensor);
    result.outputs.insert(result.outputs.end(), got.begin(), got.end());
    if (result.problem.empty())
      result.problem = compare(outputs[o], got, wanted[o], test.bound, [&](double one, double other) {
        return is_equal_or_reached(op, is_planted, one, other);
      });
  }
  if (result.problem.empty() && rest_of(memory, outputs) != rest)
    result.problem = "memory beside the outputs was written";
  return result;
}

}  // namespace heddle
