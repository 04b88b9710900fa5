#include "heddle/engine/loaded_program.h"

#include <algorithm>
#include <string>
#include <utility>

#include "heddle/base/memory.h"
#include "heddle/engine/coded_weights.h"
#include "heddle/engine/default_executor.h"
#include "heddle/engine/memory_need.h"
#include "heddle/engine/score_buffers.h"
#include "heddle/ir/executor/artefact.h"

namespace heddle {
namespace {

constexpr const char* kRecord = "a step's record";

std::unique_ptr<Executor> make_executor(const Program& program, const Memory& memory,
                                        const EngineOptions& options) {
  ExecutorOptions run = options.run;
  run.device = options.device;
  run.threads = options.threads;
  if (options.artefact) run.code = &options.artefact->code;
  return executor_for(options.executor, program).create(program, memory, run);
}

}  // namespace

SharedMemory::SharedMemory(const Planner& planner, const EngineOptions& options) {
  if (const ExecutorSpec& spec = get_executor(options.executor); spec.space)
    space = &spec.space(options.device);
  const MemoryNeed need = memory_need(planner, options.max_sequences, space);
  if (options.on_need) options.on_need(need);
  require_fit(need);
  const ModelGraph one = planner.graph(1, 1);
  weights_note = CodedWeights(one).note();
  weights.emplace(planner.model(), one, options.threads, space, options.progress);
  for (const Buffer& buffer : one.graph.buffers())
    if (buffer.kind == BufferKind::kPages) {
      kv.emplace(buffer.name, Storage(size_t(buffer.bytes), space, "the KV cache", true));
      if (!is_of_scores(buffer.name)) kv_bytes += size_t(buffer.bytes);
    }
}

void SharedMemory::set_edits(u32 slot, std::span<const float> edits) {
  const auto all = kv.find(kScoreEdits);
  if (all == kv.end()) return;  // nothing is chosen
  copy_to(space, all->second.data() + slot * edits.size_bytes(), edits.data(), edits.size_bytes());
}

void SharedMemory::set_mask(u32 slot, std::span<const u32> mask) {
  const auto all = kv.find(kScoreMasks);
  if (all == kv.end()) return;  // nothing is chosen
  copy_to(space, all->second.data() + slot * mask.size_bytes(), mask.data(), mask.size_bytes());
}

LoadedProgram::LoadedProgram(Program made, const EngineOptions& options, const SharedMemory& shared)
    : program_(std::move(made)), record_(program_.shape), space_(shared.space) {
  own_.emplace_back(size_t(std::max<i64>(program_.arena_bytes, 1)), space_,
                    "the activations of a step of " + std::to_string(program_.shape.rows) + " rows");
  if (space_) {
    host_.emplace(size_t(StepHost::bytes(program_.shape)), space_, kRecord);
    state_.emplace(size_t(StepDevice::bytes(program_.shape)), space_, kRecord);
  }
  for (u32 b = 0; b < program_.buffers.size(); ++b) {
    const Buffer& info = program_.buffers[b].info;
    if (info.kind == BufferKind::kOutput) logits_ = b;
    memory_.base.push_back(place(program_.buffers[b], shared));
    memory_.panels.push_back(shared.weights->has(info.name) ? shared.weights->panels(info.name) : nullptr);
  }
  executor_ = make_executor(program_, memory_, options);
}

std::byte* LoadedProgram::place(const ProgramBuffer& buffer, const SharedMemory& shared) {
  const auto& [info, arena_offset] = buffer;
  if (info.kind == BufferKind::kStepHost) return host_ ? host_->data() : record_.host_bytes();
  if (info.kind == BufferKind::kStepDevice) return state_ ? state_->data() : record_.device_bytes();
  if (info.kind == BufferKind::kPages) return shared.kv.at(info.name).data();
  if (shared.weights->has(info.name)) return shared.weights->data(info.name);
  if (arena_offset >= 0) return own_.front().data() + arena_offset;
  return own_.emplace_back(size_t(info.bytes), space_, info.name).data();
}

RunReport LoadedProgram::run(int steps, const StepWatch* watch) {
  if (host_) {
    host_->write(record_.host_bytes(), host_->size());
    state_->write(record_.device_bytes(), state_->size());
  }
  const RunReport report = watch ? executor_->run(steps, *watch) : executor_->run(steps);
  if (state_) state_->read(record_.device_bytes(), state_->size());
  return report;
}

void LoadedProgram::read_logits(size_t first_row, std::span<float> rows) const {
  const size_t begin = first_row * size_t(program_.shape.vocab) * sizeof(float);
  if (!rows.empty()) copy_from(space_, rows.data(), memory_.base[logits_] + begin, rows.size_bytes());
}

std::vector<std::byte> LoadedProgram::buffer(u32 index) const {
  std::vector<std::byte> bytes(size_t(program_.buffers[index].info.bytes));
  copy_from(space_, bytes.data(), memory_.base[index], bytes.size());
  return bytes;
}

}  // namespace heddle
