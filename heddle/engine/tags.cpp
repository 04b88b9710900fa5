#include <algorithm>
#include <optional>

#include "heddle/engine/lower.h"

namespace heddle {
namespace {

constexpr i64 kMostBytes = 16 << 10;  // on chip, beside the operand that is made of them

struct Use {
  std::optional<u32> maker;  // a node
  i32 element = 0;           // bytes
  bool fits = true;
};

class Keeper {
 public:
  Keeper(Graph& graph, const Tiles& tiles) : graph_(graph), tiles_(tiles), uses_(graph.buffers().size()) {}

  void run() {
    for (u32 n = 0; n < graph_.nodes().size(); ++n) look_at_arguments(n);
    std::vector<NodeRule> rules(graph_.nodes().begin(), graph_.nodes().end());
    std::vector<Region> regions;
    for (const LoweredTile& tile : tiles_.all) {
      regions.clear();
      rules[tile.node].append(tile.at, regions);
      for (const Region& region : regions) look_at(region);
    }
    for (size_t b = 0; b < uses_.size(); ++b) {
      Buffer& buffer = graph_.buffers()[b];
      buffer.tagged &= uses_[b].maker && uses_[b].fits && buffer.bytes <= kMostBytes;
    }
  }

 private:
  void look_at_arguments(u32 n) {
    bool makes = false;  // a tagged buffer
    for (const Part& part : graph_.nodes()[n].parts)
      for (const Field& field : part.op->fields) {
        if (!field.is_tensor()) continue;
        const Tensor& value = field.tensor(part.args.data());
        if (!value.exists() || !graph_.buffers()[value.buffer].tagged) continue;
        Use& use = uses_[value.buffer];
        const i32 element = size_of(value.dtype);
        use.fits &= is_float(value.dtype) && (use.element == 0 || use.element == element);
        use.element = element;
        if (field.writes())
          use.fits &= !makes && !use.maker;
        else
          use.fits &= use.maker != n;
        if (field.writes()) makes = true, use.maker = n;
      }
  }

  void look_at(const Region& region) {
    const bool whole = region.bytes() == graph_.buffers()[region.buffer].bytes;
    const bool run = region.bytes() == region.end() - region.offset;
    uses_[region.buffer].fits &= region.access == Access::kRead ? whole : run;
  }

  Graph& graph_;
  const Tiles& tiles_;
  std::vector<Use> uses_;  // by buffer
};

}  // namespace

void keep_whole_tagged(Graph& graph, const Tiles& tiles) {
  Keeper(graph, tiles).run();
}

}  // namespace heddle
