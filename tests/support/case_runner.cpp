#include "tests/support/case_runner.h"

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "heddle/base/float16.h"
#include "heddle/ir/executor.h"
#include "heddle/ir/rules.h"

namespace heddle {
namespace {

constexpr size_t kCanary = 64;
constexpr std::byte kCanaryByte{0xA5};

double get(const std::byte* at, DType dtype) {
  uint16_t half;
  std::memcpy(&half, at, sizeof half);
  float value;
  int32_t integer;
  switch (dtype) {
    case DType::kBf16:
      return double(bf16_to_float(half));
    case DType::kF16:
      return double(f16_to_float(half));
    case DType::kI32:
      std::memcpy(&integer, at, 4);
      return integer;
    case DType::kU8:
      return double(*at);
    case DType::kF32:
      std::memcpy(&value, at, 4);
      return double(value);
  }
  return 0;
}

void put(std::byte* at, DType dtype, double value) {
  uint16_t half;
  float single = float(value);
  int32_t integer = int32_t(std::lrint(value));
  switch (dtype) {
    case DType::kBf16:
      half = float_to_bf16(single), std::memcpy(at, &half, 2);
      break;
    case DType::kF16:
      half = float_to_f16(single), std::memcpy(at, &half, 2);
      break;
    case DType::kI32:
      std::memcpy(at, &integer, 4);
      break;
    case DType::kU8:
      *at = std::byte(integer);
      break;
    case DType::kF32:
      std::memcpy(at, &single, 4);
      break;
  }
}

// Place of an element in elements, panels one after the other.
i64 place(const Weight& w, i32 r, i32 k) {
  const i64 panel = i64(r / w.panel_rows) * w.slices() + k / w.slice_cols();
  return panel * w.panel_rows * w.padded_cols() + w.place(r % w.panel_rows, k % w.slice_cols());
}

// Memory of the case: one allocation per argument, canaries on both sides.
class CaseMemory : public Values {
 public:
  u32 add(Buffer info) {
    const size_t bytes = size_t(info.bytes);
    store_.emplace_back(bytes + 2 * kCanary + 64, kCanaryByte);
    std::byte* base = store_.back().data() + kCanary;
    base += (64 - reinterpret_cast<uintptr_t>(base) % 64) % 64;
    memory.base.push_back(base);
    memory.panels.push_back(nullptr);
    buffers.push_back({std::move(info), -1});
    return u32(buffers.size() - 1);
  }

  bool canaries_whole() const {
    for (size_t b = 0; b < buffers.size(); ++b) {
      const std::byte *base = memory.base[b], *end = base + buffers[b].info.bytes;
      for (const std::byte* at = store_[b].data(); at < base; ++at)
        if (*at != kCanaryByte) return false;
      for (const std::byte* at = end; at < store_[b].data() + store_[b].size(); ++at)
        if (*at != kCanaryByte) return false;
    }
    return true;
  }

  template <class F>
  void each(const Tensor& tensor, F&& f) const {
    std::array<i32, kMaxRank> at = {};
    const i64 count = elements(tensor);
    for (i64 n = 0; n < count; ++n) {
      i64 offset = 0;
      for (int d = 0; d < tensor.rank; ++d) offset += at[size_t(d)] * tensor.stride[d];
      f(size_t(n), memory.base[tensor.buffer] + tensor.offset + offset * size_of(tensor.dtype));
      for (int d = tensor.rank - 1; d >= 0 && ++at[size_t(d)] == tensor.size[d]; --d) at[size_t(d)] = 0;
    }
  }
  static i64 elements(const Tensor& tensor) {
    i64 count = 1;
    for (int d = 0; d < tensor.rank; ++d) count *= tensor.size[d];
    return count;
  }

  std::vector<double> read(const Tensor& tensor) const override {
    std::vector<double> values(size_t(elements(tensor)));
    each(tensor, [&](size_t n, const std::byte* at) { values[n] = get(at, tensor.dtype); });
    return values;
  }
  std::vector<double> read(const Weight& weight) const override {
    std::vector<double> values;
    const i64 element = size_of(weight.data.dtype);
    for (i32 r = 0; r < weight.rows(); ++r)
      for (i32 k = 0; k < weight.cols(); ++k)
        values.push_back(
            get(memory.base[weight.data.buffer] + place(weight, r, k) * element, weight.data.dtype));
    return values;
  }
  void write(const Tensor& tensor, std::span<const double> values) override {
    each(tensor, [&](size_t n, std::byte* at) { put(at, tensor.dtype, values[n]); });
  }
  std::byte* bytes(u32 buffer) override { return memory.base[buffer]; }

  Memory memory;
  std::vector<ProgramBuffer> buffers;
  std::map<u32, std::vector<u64>> tables;

 private:
  std::vector<std::vector<std::byte>> store_;
};

// Gives every argument of a case a buffer; inputs get random values in [-1, 1].
struct Allocate : ArgVisitor {
  CaseMemory* memory;
  std::mt19937_64 random{7};
  std::vector<std::pair<std::string, Tensor>> outputs;

  double uniform() { return double(random() >> 11) * 0x1p-52 - 1; }

  void tensor(const char* name, Tensor& value, const char*, Access access) override {
    if (value.rank == 0) return;  // an optional argument that this case leaves out
    i64 bytes = size_of(value.dtype);
    for (int d = 0; d < value.rank; ++d)
      bytes += (value.size[d] - 1) * value.stride[d] * size_of(value.dtype);
    if (!value.exists())
      value.buffer = memory->add({.name = name, .kind = BufferKind::kActivation, .bytes = bytes});
    std::vector<double> values(size_t(CaseMemory::elements(value)));
    for (double& v : values) v = access == Access::kWrite ? NAN : uniform();
    if (access == Access::kWrite && !is_float(value.dtype)) std::fill(values.begin(), values.end(), -77.0);
    if (value.dtype != DType::kU8) memory->write(value, values);
    if (access == Access::kWrite) outputs.push_back({name, value});
  }
  void weight(const char* name, Weight& value, const char*) override {
    if (value.data.rank == 0) return;
    const i64 bytes = value.panel_bytes() * value.panels();
    value.data.buffer = memory->add({.name = name, .kind = BufferKind::kWeight, .bytes = bytes});
    std::memset(memory->memory.base.back(), 0, size_t(bytes));
    const i64 element = size_of(value.data.dtype);
    for (i32 r = 0; r < value.rows(); ++r)
      for (i32 k = 0; k < value.cols(); ++k)
        put(memory->memory.base.back() + place(value, r, k) * element, value.data.dtype, uniform());
    auto& table = memory->tables[value.data.buffer];
    for (i32 p = 0; p < value.panels(); ++p) table.push_back(u64(p) * u64(value.panel_bytes()));
    memory->memory.panels.back() = table.data();
  }
  void attribute(const char*, i32&) override {}
  void attribute(const char*, float&) override {}
};

Program one_call(const OpSpec& op, const std::vector<std::byte>& args, const CaseMemory& memory) {
  Program program;
  program.name = op.name;
  program.buffers = memory.buffers;
  program.opcodes = {{.ops = {op.name}, .main = 0, .hash = chain_hash({op.name}, 0)}};
  program.calls = {{.opcode = 0, .node = 0, .args = {args}}};
  program.node_names = {op.name};
  program.workers.resize(1);
  for (const TileCoord& tile : default_tiles(op.axes(args.data(), TilingTarget{}))) {
    Instruction instruction;
    instruction.opcode = 0;
    std::copy(tile.at, tile.at + 4, instruction.tile);
    program.workers[0].push_back(instruction);
  }
  program.workers[0].push_back(Instruction{});
  return program;
}

std::string compare(const std::string& name, std::span<const double> got, std::span<const double> wanted,
                    CaseResult& result) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == wanted[i]) continue;
    if (std::isnan(got[i]) != std::isnan(wanted[i]))
      return fmt::format("{}[{}] is {}; the reference has {}", name, i, got[i], wanted[i]);
    double error = std::abs(got[i] - wanted[i]) / (1 + std::abs(wanted[i]));
    if (std::isnan(error)) continue;
    result.error = std::max(result.error, error);
    if (!(error <= result.bound))
      return fmt::format("{}[{}] is {}; the reference has {}, error {:.3g} above {:.3g}", name, i, got[i],
                         wanted[i], error, result.bound);
  }
  return "";
}

}  // namespace

CaseResult run_case(const OpSpec& op, const Case& test, const std::string& executor) {
  CaseResult result{.bound = test.bound};
  std::vector<std::byte> args = test.args;
  op.infer(args.data());
  CaseMemory memory;
  Allocate allocate;
  allocate.memory = &memory;
  op.visit(args.data(), allocate);
  if (test.prepare) test.prepare(args.data(), memory);
  // Outputs that are inputs too (state, pages) keep what prepare left in them.
  std::vector<std::vector<double>> before;
  for (const auto& [name, tensor] : allocate.outputs) before.push_back(memory.read(tensor));

  op.reference(args.data(), memory);
  std::vector<std::vector<double>> wanted;
  for (size_t o = 0; o < allocate.outputs.size(); ++o) {
    wanted.push_back(memory.read(allocate.outputs[o].second));
    memory.write(allocate.outputs[o].second, before[o]);
  }
  Program program = one_call(op, args, memory);
  get_executor(executor).create(program, memory.memory, ExecutorOptions{})->run(1);
  for (size_t o = 0; o < allocate.outputs.size() && result.problem.empty(); ++o)
    result.problem =
        compare(allocate.outputs[o].first, memory.read(allocate.outputs[o].second), wanted[o], result);
  if (result.problem.empty() && !memory.canaries_whole())
    result.problem = "a canary beside a buffer was overwritten";
  return result;
}

}  // namespace heddle
