#include "heddle/ir/check/form.h"

namespace heddle::proof {
namespace {

void check_topology(const Program& program, Faults& faults) {
  const Topology& t = program.topology;
  if (t.workers < 1 || t.workers > kMostWorkers)
    return faults.add(FaultKind::kDoesNotFit, "[topology] {} workers; must be 1 to {}", t.workers,
                      kMostWorkers);
  if (program.workers.size() != size_t(t.workers))
    faults.add(FaultKind::kMalformed, "[topology] {} streams for {} workers", program.workers.size(),
               t.workers);
  if (t.worker_memory < 0 || t.ring_bytes < 0 || t.worker_memory > kMostBytes || t.ring_bytes > kMostBytes)
    faults.add(FaultKind::kMalformed, "[topology] {} bytes a worker, {} of them its ring's", t.worker_memory,
               t.ring_bytes);
  if (program.arena_bytes < 0 || program.arena_bytes > kMostBytes)
    faults.add(FaultKind::kMalformed, "[program] an arena of {} bytes", program.arena_bytes);
}

constexpr i32 kMostOfAShape = 1 << 24;

// Checks the numbers that the record's layout is computed from, in i32 and i64.
void check_shape(const StepShape& shape, Faults& faults) {
  StepShape::visit(shape, [&](std::string_view field, i32 value) {
    const i32 least = field == "vocab" ? 0 : 1;  // a program that chooses no tokens has no vocabulary
    if (value < least || value > kMostOfAShape)
      faults.add(FaultKind::kMalformed, "[step] {} = {}; must be {} to {}", field, value, least,
                 kMostOfAShape);
  });
  if (i64(shape.pages_per_sequence) * shape.page_size > (1 << 30))
    faults.add(FaultKind::kDoesNotFit, "[step] {} pages of {} positions; at most 2^30 positions",
               shape.pages_per_sequence, shape.page_size);
}

// Checks that a part of the step record has the size that the shape gives, and that the program touches no
// more.
void check_record(const StepShape& shape, const Buffer& info, Faults& faults) {
  if (info.kind != BufferKind::kStepHost && info.kind != BufferKind::kStepDevice) return;
  const i64 bytes = info.kind == BufferKind::kStepHost ? StepHost::bytes(shape) : StepDevice::bytes(shape);
  if (info.bytes > bytes)
    faults.add(FaultKind::kOutOfBounds, "[{}] {} bytes of a {} record that has {}", info.name, info.bytes,
               name(info.kind), bytes);
}

void check_buffer(const Program& program, const ProgramBuffer& buffer, Faults& faults) {
  const Buffer& info = buffer.info;
  if (int(info.kind) >= kBufferKinds)
    return faults.add(FaultKind::kMalformed, "[{}] buffer kind {}", info.name, int(info.kind));
  if (info.bytes < 1 || info.bytes > kMostBytes)
    return faults.add(FaultKind::kMalformed, "[{}] a buffer of {} bytes", info.name, info.bytes);
  if (buffer.arena_offset == -1) return;
  if (info.kind != BufferKind::kActivation)
    faults.add(FaultKind::kMalformed, "[{}] {} buffer in the arena; only activations share memory", info.name,
               name(info.kind));
  if (buffer.arena_offset < 0 || buffer.arena_offset % 64 != 0)
    faults.add(FaultKind::kMalformed, "[{}] arena offset {}; must be a multiple of 64", info.name,
               buffer.arena_offset);
  else if (info.bytes > program.arena_bytes || buffer.arena_offset > program.arena_bytes - info.bytes)
    faults.add(FaultKind::kOutOfBounds, "[{}] bytes [{}, {}) of an arena of {}", info.name,
               buffer.arena_offset, u64(buffer.arena_offset) + u64(info.bytes), program.arena_bytes);
}

void check_home(const Program& program, const Home& home, Faults& faults) {
  if (home.buffer >= program.buffers.size())
    return faults.add(FaultKind::kMalformed, "[homes] buffer {}; there are {}", home.buffer,
                      program.buffers.size());
  const Buffer& buffer = program.buffers[home.buffer].info;
  const i64 limit = home.period > 0 ? home.period : buffer.bytes;
  if (home.worker >= program.workers.size() || home.begin < 0 || home.begin > home.end || home.end > limit ||
      home.period < 0 || limit > buffer.bytes)
    faults.add(FaultKind::kMalformed, "[homes] bytes [{}, {}) of each {} of {} ({} bytes) at worker {} of {}",
               home.begin, home.end, limit, buffer.name, buffer.bytes, home.worker, program.workers.size());
}

}  // namespace

void check_tables(const Program& program, Faults& faults) {
  check_topology(program, faults);
  check_shape(program.shape, faults);
  for (const ProgramBuffer& buffer : program.buffers) check_buffer(program, buffer, faults);
  if (!faults.empty()) return;  // from here on, arithmetic on sizes is safe
  for (const ProgramBuffer& buffer : program.buffers) check_record(program.shape, buffer.info, faults);
  for (const Home& home : program.homes) check_home(program, home, faults);
  for (size_t c = 0; c < program.counters.size(); ++c)
    if (const u32 total = program.counters[c].total; total > kMostOfACounter)
      faults.add(FaultKind::kMalformed, "[counter {}] total {}; at most {} keeps comparisons wrap-safe", c,
                 total, kMostOfACounter);
}

}  // namespace heddle::proof
