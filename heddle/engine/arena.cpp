#include "heddle/engine/arena.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace heddle {
namespace {

constexpr i64 kAlign = 128;  // a cache line of a GPU

struct Life {
  u32 first = ~0u, last = 0;  // nodes
  i64 bytes = 0;
  u32 root = 0;  // the buffer whose bytes it uses
};

struct Use {
  const Part* part;
  std::string dims;
  Tensor tensor;
  Access access;
};

std::vector<Use> uses_of(const Node& node) {
  std::vector<Use> uses;
  for (const Part& part : node.parts)
    for (const Field& field : part.op->fields)
      if (!field.is_attribute() && field.elements(part.args.data()).exists())
        uses.push_back({&part, field.dims_text, field.elements(part.args.data()), field.access});
  return uses;
}

bool plannable(const Buffer& buffer) {
  return buffer.kind == BufferKind::kActivation && !buffer.resident;
}

bool same_place(const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.rank != b.rank || a.offset != b.offset) return false;
  for (int d = 0; d < a.rank; ++d)
    if (a.size[d] != b.size[d] || a.stride[d] != b.stride[d]) return false;
  return true;
}

// True if the part that writes `out` reads `in`, or an epilogue of the chain whose main op writes `out` does.
bool same_tiles(const Node& node, const Use& in, const Use& out) {
  if (!in.part->op->traits.in_place) return false;
  return in.part == out.part || (out.part == &node.main_part() && in.part > out.part);
}

// An output may use the bytes of an input that the same part reads tile for tile, if the input dies at this
// node and nothing else in the node touches it.
void alias_in_place(const Graph& graph, std::vector<Life>& lives) {
  for (u32 n = 0; n < graph.nodes().size(); ++n) {
    const std::vector<Use> uses = uses_of(graph.nodes()[n]);
    for (const Use& out : uses) {
      if (out.access != Access::kWrite) continue;
      const u32 y = out.tensor.buffer;
      if (!plannable(graph.buffers()[y]) || lives[y].first != n || lives[y].root != y) continue;
      for (const Use& in : uses) {
        const u32 x = in.tensor.buffer;
        if (!same_tiles(graph.nodes()[n], in, out) || in.access != Access::kRead || in.dims != out.dims ||
            x == y)
          continue;
        if (!plannable(graph.buffers()[x]) || !same_place(in.tensor, out.tensor)) continue;
        const u32 root = lives[x].root;
        if (lives[x].last != n || lives[root].last != n || lives[root].bytes < lives[y].bytes) continue;
        if (std::count_if(uses.begin(), uses.end(), [&](const Use& u) { return u.tensor.buffer == x; }) != 1)
          continue;
        lives[y].root = root;
        lives[root].last = std::max(lives[root].last, lives[y].last);
        break;
      }
    }
  }
}

}  // namespace

ArenaPlan plan_arena(const Graph& graph, bool keep_buffers) {
  const auto& buffers = graph.buffers();
  std::vector<Life> lives(buffers.size());
  for (u32 b = 0; b < buffers.size(); ++b) lives[b].bytes = buffers[b].bytes, lives[b].root = b;
  for (u32 n = 0; n < graph.nodes().size(); ++n)
    for (const Use& use : uses_of(graph.nodes()[n])) {
      Life& life = lives[use.tensor.buffer];
      life.first = std::min(life.first, n);
      life.last = std::max(life.last, n);
    }
  ArenaPlan plan;
  plan.offset.assign(buffers.size(), -1);
  if (keep_buffers) return plan;
  alias_in_place(graph, lives);

  // Places the largest buffers first, each at the lowest offset that is free over its life.
  std::vector<u32> order;
  for (u32 b = 0; b < buffers.size(); ++b)
    if (plannable(buffers[b]) && lives[b].first != ~0u && lives[b].root == b) order.push_back(b);
  std::stable_sort(order.begin(), order.end(), [&](u32 a, u32 b) { return lives[a].bytes > lives[b].bytes; });
  std::vector<u32> placed;  // sorted by offset
  for (u32 b : order) {
    i64 at = 0;
    for (u32 other : placed) {
      if (lives[other].last < lives[b].first || lives[b].last < lives[other].first) continue;
      if (plan.offset[other] >= at + lives[b].bytes) break;
      at = std::max(at, (plan.offset[other] + lives[other].bytes + kAlign - 1) / kAlign * kAlign);
    }
    plan.offset[b] = at;
    plan.bytes = std::max(plan.bytes, at + lives[b].bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), b,
                                   [&](u32 x, u32 y) { return plan.offset[x] < plan.offset[y]; }),
                  b);
  }
  for (u32 b = 0; b < buffers.size(); ++b)
    if (lives[b].root != b) plan.offset[b] = plan.offset[lives[b].root];
  return plan;
}

}  // namespace heddle
