// The cost of tiles: bytes and arithmetic as the ops state them, and the nanoseconds that these take. Only
// schedules and predictions use it; nothing that a program computes depends on it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/ir/graph.h"
#include "heddle/ir/program/program.h"

namespace heddle {

// The cost of one tile. Where it depends on data, the op estimates: attention counts one unit of each part,
// and each expert gets the same number of entries.
struct Cost {
  double stream_bytes = 0;  // weights and KV, which may be prefetched
  double bytes = 0;         // other bytes that are read and written
  double flops = 0;
};

// Arithmetic of a tile, over its whole chain.
double node_flops(const Node& node, const TileCoord& tile);

// Computes the costs of a node's tiles. The rule keeps references to the node and to `kinds` (the kinds of
// all buffers); both must outlive it.
class CostRule {
 public:
  CostRule(const Node& node, const std::vector<BufferKind>& kinds);
  Cost operator()(const TileCoord& tile) const;

 private:
  void add(const Region& region, Cost& cost) const;

  const Node* node_;
  const std::vector<BufferKind>* kinds_;
  NodeRule rule_;
};

// Nanoseconds for one worker while all workers are busy.
struct CostModel {
  double ns_per_stream_byte = 0.1;
  double ns_per_byte = 0.03;
  double ns_per_flop = 0.05;
  double ns_per_tile = 500;
  double ns_per_message = 500;            // from a signal until another worker sees it
  std::map<std::string, double> factors;  // factor of a chain's work ("rms_norm+linear"), if not 1

  double compute_ns(const std::string& chain, const Cost& cost) const;
  double stream_ns(const Cost& cost) const { return ns_per_stream_byte * cost.stream_bytes; }
  double tile_ns(const std::string& chain, const Cost& cost) const;
  double message_ns(EdgeKind kind) const;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("ns_per_stream_byte", s.ns_per_stream_byte), v("ns_per_byte", s.ns_per_byte);
    v("ns_per_flop", s.ns_per_flop), v("ns_per_tile", s.ns_per_tile), v("ns_per_message", s.ns_per_message);
  }
};

// The cost of every instruction of the program, worker by worker. Looks ops up in the registry.
std::vector<std::vector<Cost>> costs_of(const Program& program);

}  // namespace heddle
