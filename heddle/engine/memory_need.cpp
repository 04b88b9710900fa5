#include "heddle/engine/memory_need.h"

#include <algorithm>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/memory.h"
#include "heddle/engine/arena.h"
#include "heddle/engine/coded_weights.h"
#include "heddle/engine/score_buffers.h"

namespace heddle {
namespace {

// Memory of a program besides its arena. An activation that could share and has no place in the arena is no
// longer used: passes have fused the call that made it.
bool has_its_own(const Buffer& buffer) {
  if (buffer.kind == BufferKind::kActivation) return buffer.resident;
  return buffer.kind == BufferKind::kOutput || buffer.kind == BufferKind::kStepHost ||
         buffer.kind == BufferKind::kStepDevice;
}

i64 program_bytes(const Graph& graph) {
  const ArenaPlan plan = plan_arena(graph, false);
  i64 bytes = plan.bytes;
  for (size_t b = 0; b < graph.buffers().size(); ++b)
    if (has_its_own(graph.buffers()[b]) && plan.offset[b] < 0) bytes += graph.buffers()[b].bytes;
  return bytes;
}

}  // namespace

std::string MemoryNeed::text() const {
  const std::string seen =
      window > 0 && window < context ? fmt::format(", of which {} are seen", window) : "";
  const std::string in_codes = codes.empty() ? "" : fmt::format(" ({})", codes);
  return fmt::format("weights {}{}, KV cache {} ({} {} of {} positions{}), programs {}", bytes_text(weights),
                     in_codes, bytes_text(kv_pages), sequences, sequences == 1 ? "sequence" : "sequences",
                     context, seen, bytes_text(programs));
}

MemoryNeed memory_need(const Planner& planner, i32 sequences, MemorySpace* space) {
  const Capacity& capacity = planner.capacity();
  MemoryNeed need{.available = space ? space->available() : available_memory(),
                  .sequences = sequences,
                  .context = capacity.pages_per_sequence * capacity.page_size,
                  .window = capacity.window};
  const ModelGraph one = planner.graph(1, 1);
  need.codes = CodedWeights(one).text();
  for (const Buffer& buffer : one.graph.buffers()) {
    if (buffer.kind == BufferKind::kWeight || buffer.kind == BufferKind::kTable) need.weights += buffer.bytes;
    if (buffer.kind == BufferKind::kPages)
      (is_of_scores(buffer.name) ? need.programs : need.kv_pages) += buffer.bytes;
  }
  for (i32 rows : planner.row_classes())
    need.programs += program_bytes(planner.fused(rows, std::min(rows, sequences)));
  return need;
}

void require_fit(const MemoryNeed& need) {
  if (need.available < 0 || need.total() <= need.available) return;
  fail(ErrorCode::kUnsupported,
       "[memory] {} are needed and {} are free: {}; a smaller --max-context, fewer sequences or a smaller "
       "model "
       "need less",
       bytes_text(need.total()), bytes_text(need.available), need.text());
}

}  // namespace heddle
