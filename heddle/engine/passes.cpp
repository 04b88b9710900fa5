#include "heddle/engine/passes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace heddle {
namespace {

bool same_tensor(const Tensor& a, const Tensor& b) {
  if (a.buffer != b.buffer || a.offset != b.offset || a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int d = 0; d < a.rank; ++d)
    if (a.size[d] != b.size[d] || a.stride[d] != b.stride[d]) return false;
  return true;
}

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), nodes_(graph.nodes()) {
    touching_.resize(graph.buffers().size());
    for (size_t n = 0; n < nodes_.size(); ++n) note_touches(n);
  }

  // Nodes that touch a buffer with the given access, in order.
  const std::set<size_t>& touching(u32 buffer, Access access) const {
    return touching_[buffer][size_t(access)];
  }
  // Removes absorbed nodes from the graph at the end, so that the others keep their numbers.
  void drop_absorbed() {
    std::erase_if(nodes_, [](const Node& node) { return node.parts.empty(); });
  }

  // The output of a chain that an epilogue would take.
  Tensor* chain_output(Node& node) { return argument(node.main_part(), node.main_part().op->traits.output); }

  // Appends the next call as an epilogue, if there is one that can be.
  std::optional<std::string> fuse_epilogue(size_t n) {
    Tensor* y = chain_output(nodes_[n]);
    if (!y) return std::nullopt;
    const std::set<size_t> readers = touching(y->buffer, Access::kRead);
    for (size_t e : readers) {
      if (e <= n || nodes_[e].parts.size() != 1) continue;
      Part& part = nodes_[e].main_part();
      const OpTraits& traits = part.op->traits;
      if (!traits.epilogue || (traits.can_fuse && !traits.can_fuse(part.args.data()))) continue;
      Tensor* in = argument(part, traits.input);
      Tensor* out = argument(part, traits.output);
      const bool passes_through = in == out;
      if (!same_tensor(*in, *y) || nodes_[e].live != nodes_[n].live || reads(nodes_[e], y->buffer) > 1)
        continue;
      // A call that replaces the value must be its only reader; one that passes it on must be the first.
      if (passes_through ? e != *readers.begin() : readers.size() != 1) continue;
      if (graph_.buffers()[y->buffer].kind != BufferKind::kActivation || !inputs_ready(e, n, *in)) continue;
      if (nodes_[n].main_part().op->traits.scatters && knows_rows(part)) continue;
      std::string note = fmt::format("{} absorbs {} as an epilogue", nodes_[n].name, nodes_[e].name);
      absorb(n, e, passes_through);
      return note;
    }
    return std::nullopt;
  }

  // Makes the call that produces the chain's input its prologue, if all readers of that input are chains.
  std::optional<std::string> fuse_prologue(size_t n, const PassOptions& options) {
    Part& main = nodes_[n].main_part();
    Tensor* x = argument(main, main.op->traits.input);
    if (!x || !x->exists() || nodes_[n].main > 0 || x->size[0] > options.max_prologue_rows)
      return std::nullopt;
    const std::set<size_t>& writers = touching(x->buffer, Access::kWrite);
    if (writers.size() != 1 || *writers.begin() >= n) return std::nullopt;
    const size_t p = *writers.begin();
    if (nodes_[p].parts.size() != 1) return std::nullopt;
    Part part = nodes_[p].main_part();
    const OpTraits& traits = part.op->traits;
    if (!traits.prologue || nodes_[p].live != nodes_[n].live) return std::nullopt;
    if (!same_tensor(*argument(part, traits.output), *x)) return std::nullopt;
    if (touching(x->buffer, Access::kRead).size() != 1 || reads(nodes_[n], x->buffer) > 1)
      return std::nullopt;
    if (!unchanged_between(part, p, n) || bytes_read(part) > options.max_prologue_bytes) return std::nullopt;
    std::string note = fmt::format("{} absorbs {} as its prologue", nodes_[n].name, nodes_[p].name);
    forget_touches(p), forget_touches(n);
    argument(part, traits.output)->buffer = kNoBuffer;
    x->buffer = kNoBuffer;
    nodes_[n].parts.insert(nodes_[n].parts.begin(), std::move(part));
    nodes_[n].main = 1;
    nodes_[p].parts.clear();
    note_touches(n);
    return note;
  }

 private:
  // Counts the arguments of a node that read a buffer. Inside a chain a value has one reader; x + x has two.
  size_t reads(Node& node, u32 buffer) {
    size_t count = 0;
    for (Part& part : node.parts)
      for (const Argument& a : arguments(part))
        count += a.access == Access::kRead && a.tensor->buffer == buffer;
    return count;
  }
  // True if an epilogue reads or writes anything by rows, besides its input and constants.
  bool knows_rows(Part& part) {
    const OpTraits& traits = part.op->traits;
    for (const Argument& a : arguments(part))
      if (a.tensor->exists() && a.name != traits.input && a.name != traits.output &&
          !is_immutable(graph_.buffers()[a.tensor->buffer].kind))
        return true;
    return false;
  }
  // True if the other inputs of node e are made before node n, and no node writes them in between.
  bool inputs_ready(size_t e, size_t n, const Tensor& handed) {
    for (const Argument& a : arguments(nodes_[e].main_part())) {
      if (!a.tensor->exists() || a.access != Access::kRead || a.tensor->buffer == handed.buffer) continue;
      for (size_t w : touching(a.tensor->buffer, Access::kWrite))
        if (w >= n && w < e) return false;
    }
    return true;
  }
  // Bytes that are made in a step. A few words of the step record count as none.
  i64 bytes_read(Part& part) {
    i64 bytes = 0;
    for (const Argument& a : arguments(part))
      if (a.tensor->exists() && a.access == Access::kRead &&
          graph_.buffers()[a.tensor->buffer].kind == BufferKind::kActivation)
        bytes += whole(*a.tensor, Access::kRead).bytes();
    return bytes;
  }
  bool unchanged_between(Part& part, size_t p, size_t n) {
    for (const Argument& a : arguments(part)) {
      if (!a.tensor->exists() || a.access != Access::kRead) continue;
      for (size_t w : touching(a.tensor->buffer, Access::kWrite))
        if (w > p && w < n) return false;
    }
    return true;
  }

  void note_touches(size_t n) {
    for (Part& part : nodes_[n].parts)
      for (const Argument& a : arguments(part))
        if (a.tensor->exists()) touching_[a.tensor->buffer][size_t(a.access)].insert(n);
  }
  void forget_touches(size_t n) {
    for (Part& part : nodes_[n].parts)
      for (const Argument& a : arguments(part))
        if (a.tensor->exists()) touching_[a.tensor->buffer][size_t(a.access)].erase(n);
  }

  void absorb(size_t n, size_t e, bool passes_through) {
    forget_touches(n), forget_touches(e);
    Part part = std::move(nodes_[e].main_part());
    Tensor* in = argument(part, part.op->traits.input);
    if (!passes_through) {
      Tensor* out = argument(part, part.op->traits.output);
      *chain_output(nodes_[n]) = *out;
      out->buffer = kNoBuffer;
    }
    in->buffer = kNoBuffer;
    nodes_[n].parts.push_back(std::move(part));
    nodes_[e].parts.clear();
    note_touches(n);
  }

  Graph& graph_;
  std::vector<Node>& nodes_;
  std::vector<std::array<std::set<size_t>, 2>> touching_;  // by buffer and access
};

}  // namespace

std::vector<std::string> run_passes(Graph& graph, const PassOptions& options) {
  std::vector<std::string> notes;
  Fuser fuser(graph);
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    if (graph.nodes()[n].parts.empty() || !graph.nodes()[n].main_part().op->traits.main) continue;
    while (options.fuse_epilogues) {
      auto note = fuser.fuse_epilogue(n);
      if (!note) break;
      notes.push_back(std::move(*note));
    }
    if (!options.fuse_prologues) continue;
    if (auto note = fuser.fuse_prologue(n, options)) notes.push_back(std::move(*note));
  }
  fuser.drop_absorbed();
  return notes;
}

}  // namespace heddle
