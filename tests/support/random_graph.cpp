#include "tests/support/random_graph.h"

#include <cstring>

#include "heddle/ir/rules.h"
#include "heddle/ops/activation/activation.h"
#include "heddle/ops/add/add.h"
#include "heddle/ops/copy/copy.h"
#include "heddle/ops/linear/linear.h"
#include "heddle/ops/rms_norm/rms_norm.h"

namespace heddle {
namespace {

constexpr i32 kRecordRows = 1024;  // room for the state, which is part of the step record

// Memory of a program within this process.
class OwnMemory {
 public:
  OwnMemory(const Program& program, const std::vector<Weight>& weights) {
    std::byte* arena = allocate(program.arena_bytes);
    for (const ProgramBuffer& buffer : program.buffers) {
      memory_.base.push_back(buffer.arena_offset >= 0 ? arena + buffer.arena_offset
                                                      : allocate(buffer.info.bytes));
      memory_.panels.push_back(nullptr);
    }
    for (const Weight& weight : weights) {
      auto& panels = panels_.emplace_back();
      for (i32 p = 0; p < weight.panels(); ++p) panels.push_back(u64(p) * u64(weight.panel_bytes()));
      memory_.panels[weight.data.buffer] = panels.data();
    }
  }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;
  const Memory& memory() const { return memory_; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::byte* allocate(i64 bytes) { return store_.emplace_back(size_t(bytes + 63) / 64 + 1)[0].bytes; }

  std::vector<std::vector<Line>> store_;
  std::vector<std::vector<u64>> panels_;
  Memory memory_;
};

}  // namespace

RandomGraph::RandomGraph(u64 seed) : seed_(seed), random_(seed) {
  rows_ = i32(std::array{1u, 3u, 20u, 40u}[pick(4)]);  // ops cut more than 16 rows
  cols_ = 16;
  panel_rows_ = i32(2 << pick(2));
  const Topology topology{.workers = std::min(i32(1 + pick(8)), 4 / (panel_rows_ / 2)),
                          .worker_memory = 1 << 20,
                          .ring_bytes = 1 << 12};
  options_.passes = {.fuse_epilogues = pick(2) == 0, .fuse_prologues = pick(2) == 0};
  options_.tiling.gpu = pick(2) == 0;
  for (u32 i = 0; i <= pick(2); ++i)
    made_.push_back(
        graph_.add_tensor("state" + std::to_string(i), BufferKind::kStepDevice, DType::kF32, {rows_, cols_}));
  const u32 states = u32(made_.size()), calls = 2 + pick(7);
  if (pick(2) == 0) add_residual();
  for (u32 i = 0; i < calls; ++i) add_call(i);
  const Tensor out = graph_.add_tensor("out", BufferKind::kOutput, DType::kF32, {rows_, cols_});
  graph_.call("copy", "emit", Copy{.x = made_.back(), .y = out});
  for (u32 i = 0; i < states; ++i)
    graph_.call("copy", "keep" + std::to_string(i), Copy{.x = any(), .y = made_[i]});
  placement_ = place(graph_, options_.passes, topology);
}

Tensor RandomGraph::add_vector(const std::string& name) {
  return graph_.add_tensor(name, BufferKind::kTable, DType::kF32, {cols_});
}

Weight RandomGraph::add_weight(const std::string& name) {
  Weight weight;
  weight.data = dense(DType::kF32, {cols_, cols_});
  weight.panel_rows = panel_rows_, weight.interleave = 1;
  weight.data.buffer =
      graph_.add_buffer({.name = name, .kind = BufferKind::kWeight, .bytes = weight.bytes()});
  weights_.push_back(weight);
  return weight;
}

Tensor RandomGraph::add_linear(const std::string& name, const Tensor& x) {
  const Tensor norm =
      graph_.call("rms_norm", name + ".norm", RmsNorm{.x = x, .weight = add_vector(name + ".scale")}).y;
  return graph_.call("linear", name, Linear{.x = norm, .w = add_weight(name + ".w")}).y;
}

// Adds a sum whose rows stay with workers, and a rounded copy that travels. Its homes come from a matrix.
void RandomGraph::add_residual() {
  residual_ = graph_.add_tensor("residual", BufferKind::kActivation, DType::kF32, {rows_, cols_});
  graph_.buffers()[residual_.buffer].resident = true;
  graph_.call("copy", "residual.keep", Copy{.x = made_[0], .y = residual_});
  made_.push_back(add_linear("first", made_[0]));
}

void RandomGraph::add_call(u32 index) {
  const std::string name = "n" + std::to_string(index);
  const Tensor x = any();
  switch (pick(6)) {
    case 0:
      made_.push_back(graph_.call("add", name, Add{.a = x, .b = any()}).y);
      break;
    case 1:
      made_.push_back(graph_.call("activation", name, Activation{.x = x}).y);
      break;
    case 2:
      made_.push_back(
          graph_.call("rms_norm", name, RmsNorm{.x = x, .weight = add_vector(name + ".scale")}).y);
      break;
    case 3:
      if (residual_.exists()) {
        const Add add{.a = x, .b = residual_, .y = residual_, .copy = dense(DType::kF32, {rows_, cols_})};
        made_.push_back(graph_.call("add", name, add).copy);
        break;
      }
      [[fallthrough]];
    default:
      made_.push_back(add_linear(name, x));
  }
}

Program RandomGraph::program(const std::string& scheduler) const {
  CompileOptions options = options_;
  options.scheduler = scheduler;
  Program program = compile(graph_, {.rows = kRecordRows}, placement_, options);
  program.name = "random " + std::to_string(seed_);
  return program;
}

std::vector<std::byte> RandomGraph::result(const Program& program, int steps,
                                           const ExecutorOptions& options) const {
  const OwnMemory own(program, weights_);
  std::mt19937_64 random(seed_);
  for (u32 b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b].info;
    if (buffer.kind == BufferKind::kActivation) continue;
    for (i64 i = 0; i < buffer.bytes / 4; ++i)
      reinterpret_cast<float*>(own.memory().base[b])[i] = float(i32(random() >> 33)) * 0x1p-30f - 1;
  }
  get_executor("reference").create(program, own.memory(), options)->run(steps);
  std::vector<std::byte> values;
  for (u32 b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b].info;
    if (buffer.kind == BufferKind::kOutput || buffer.kind == BufferKind::kStepDevice)
      values.insert(values.end(), own.memory().base[b], own.memory().base[b] + buffer.bytes);
  }
  return values;
}

}  // namespace heddle
