#include "tests/support/test_program.h"

#include <array>
#include <random>

#include "heddle/base/float16.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"

namespace heddle {

TestProgram::TestProgram(i32 workers, MemorySpace* space) : space_(space) {
  std::mt19937 random(5);
  const auto uniform = [&] { return float(random() >> 8) * 0x1p-23f - 1; };
  for (i32 l = 0; l <= kLayers; ++l)
    add_buffer("x" + std::to_string(l), BufferKind::kActivation, i64{kRows} * kCols * 4);
  const u32 scale = add_buffer("scale", BufferKind::kWeight, kCols * 4);
  const u32 weight = add_buffer("weight", BufferKind::kWeight, kCols * kCols * 2);
  for (u32 b : {0u, scale})
    for (i64 i = 0; i < program.buffers[b].info.bytes / 4; ++i)
      reinterpret_cast<float*>(memory.base[b])[i] = uniform();
  for (i32 i = 0; i < kCols * kCols; ++i)
    reinterpret_cast<u16*>(memory.base[weight])[i] = float_to_bf16(uniform());
  for (u64 p = 0; p < kCols / 16; ++p) panels_.push_back(p * 16 * kCols * 2);
  memory.panels[weight] = panels_.data();

  program.name = "test";
  program.opcodes = {{.ops = {"linear"}, .hash = chain_hash({"linear"}, 0)},
                     {.ops = {"rms_norm"}, .hash = chain_hash({"rms_norm"}, 0)}};
  program.counters.resize(kLayers);
  program.workers.resize(size_t(workers));
  for (i32 l = 0; l < kLayers; ++l) add_layer(l);
  for (auto& stream : program.workers) stream.emplace_back();
  if (space_) move_to_space();
}

TestProgram::~TestProgram() {
  for (std::byte* address : in_space_) space_->release(address);
}

void TestProgram::move_to_space() {
  const auto copy = [&](const void* from, size_t bytes) {
    in_space_.push_back(space_->allocate(bytes));
    space_->write(in_space_.back(), from, bytes);
    return in_space_.back();
  };
  for (size_t b = 0; b < memory.base.size(); ++b) {
    memory.base[b] = copy(memory.base[b], size_t(program.buffers[b].info.bytes));
    if (memory.panels[b])
      memory.panels[b] = reinterpret_cast<const u64*>(copy(panels_.data(), panels_.size() * sizeof(u64)));
  }
}

std::vector<float> TestProgram::result() const {
  std::vector<float> values(kRows * kCols);
  copy_from(space_, values.data(), memory.base[kLayers], values.size() * sizeof(float));
  return values;
}

u32 TestProgram::add_buffer(const std::string& name, BufferKind kind, i64 bytes) {
  store_.emplace_back(size_t(bytes + 63) / 64);
  memory.base.push_back(store_.back()[0].bytes);
  memory.panels.push_back(nullptr);
  program.buffers.push_back({{.name = name, .kind = kind, .bytes = bytes}, -1});
  return u32(program.buffers.size() - 1);
}

namespace {

Tensor tensor_in(u32 buffer, DType dtype, const std::vector<i32>& shape) {
  Tensor value = dense(dtype, shape);
  value.buffer = buffer;
  return value;
}

}  // namespace

void TestProgram::add_layer(i32 layer) {
  const i32 opcode = layer % 2, workers = i32(program.workers.size());
  const OpSpec& op = get_op(program.opcodes[size_t(opcode)].ops[0]);
  std::vector<std::byte> args = op.defaults;
  for (const Field& field : op.fields) {
    if (field.is_weight())
      field.weight(args.data()).data = tensor_in(kLayers + 2, DType::kBf16, {kCols, kCols});
    else if (field.name == "weight")
      field.tensor(args.data()) = tensor_in(kLayers + 1, DType::kF32, {kCols});
    else if (field.is_tensor())
      field.tensor(args.data()) =
          tensor_in(u32(field.writes() ? layer + 1 : layer), DType::kF32, {kRows, kCols});
  }
  program.calls.push_back({.opcode = u16(opcode), .name = "layer" + std::to_string(layer), .args = {args}});
  for (i32 w = 0; w < workers; ++w) {
    const auto share = [&](i32 units) { return std::array{units * w / workers, units * (w + 1) / workers}; };
    Instruction instruction;
    instruction.opcode = u16(opcode);
    instruction.call = u32(layer);
    if (opcode == 0) {
      const auto panels = share(kCols / 16);
      const TileCoord tile{0, kRows, panels[0] * 16, panels[1] * 16};
      std::copy(tile.at, tile.at + 4, instruction.tile);
    } else {
      const auto rows = share(kRows);
      instruction.tile[0] = rows[0], instruction.tile[1] = rows[1];
    }
    for (int i : {0, 1}) instruction.set_wait_kind(i, EdgeKind::kCounted);
    instruction.set_signal_kind(EdgeKind::kCounted);
    if (layer > 0) instruction.waits[0] = {u32(layer - 1), u32(workers)};
    if (layer + 1 < kLayers) {
      instruction.waits[1] = {u32(layer + 1), u32(workers)};
      instruction.set_previous(1, true);
    }
    instruction.signal = {u32(layer), 1};
    program.workers[size_t(w)].push_back(instruction);
  }
  program.counters[size_t(layer)].total = u32(workers);
}

}  // namespace heddle
