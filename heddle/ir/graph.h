// The graph: op calls on named buffers. Dependencies follow from what calls read and write, in the order in
// which they were added; there is no list of them. Building a graph throws its errors at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/ir/instruction.h"
#include "heddle/ir/op.h"
#include "heddle/ir/shape.h"
#include "heddle/ir/step.h"

namespace heddle {

enum class BufferKind : u8 {
  kActivation,  // lives inside a step; the planner places it in the arena
  kWeight,      // immutable
  kTable,       // immutable and small: panel tables, rotary frequencies
  kStepHost,    // the host part of the step record: immutable during a launch
  kStepDevice,  // the device part of the step record: lives across steps
  kPages,       // KV pages: live across steps; reads mean positions before this step ("old")
  kOutput,      // lives until the host has read it
  kBorrowed,    // memory of the caller, who gave it values and reads them: calls may change them in place
};

constexpr int kBufferKinds = int(BufferKind::kBorrowed) + 1;

const char* name(BufferKind kind);
inline bool is_immutable(BufferKind kind) {
  return kind == BufferKind::kWeight || kind == BufferKind::kTable || kind == BufferKind::kStepHost;
}

struct Buffer {
  std::string name;
  BufferKind kind = BufferKind::kActivation;
  i64 bytes = 0;
  bool resident = false;  // each row stays with one worker (the FP32 residual)
};

// One op with its arguments, alone or as part of a chain.
struct Part {
  const OpSpec* op = nullptr;
  std::vector<std::byte> args;

  template <class Args>
  const Args& as() const {
    return heddle::as<Args>(args.data());
  }
};

// A call: [prologue] main [epilogues...], or one op alone (main = 0).
struct Node {
  std::string name;
  std::vector<Part> parts;
  u32 main = 0;
  LiveRows live = LiveRows::kAll;
  OpConfig config = {};  // the main part's; without values: its default

  const Part& main_part() const { return parts[main]; }
  Part& main_part() { return parts[main]; }
};

// The axes of a node's main part in its configuration.
std::vector<TileAxis> axes_of(const Node& node, TilingTarget target);

// A tensor of a part, where its arguments hold it.
struct Argument {
  std::string_view name;
  Tensor* tensor;
  Access access;
};

std::vector<Argument> arguments(Part& part);
// Finds an argument by name; null when the op has none.
Tensor* argument(Part& part, std::string_view name);

class Graph {
 public:
  // Adds a buffer that holds a dense row-major tensor. Throws when the name is taken or a size is not
  // positive.
  Tensor add_tensor(std::string name, BufferKind kind, DType dtype, Sizes shape);
  u32 add_buffer(Buffer buffer);

  // Adds a call. Output tensors that do not exist yet get buffers named "<name>.<output>". Returns the
  // arguments with all outputs filled in.
  template <class Args>
  Args call(std::string_view op, std::string name, Args args) {
    std::vector<std::byte> bytes(sizeof(Args));
    new (bytes.data()) Args(args);
    return as<Args>(append(op, std::move(name), std::move(bytes)).main_part().args.data());
  }
  Node& append(const OpSpec& op, std::string name, std::vector<std::byte> args);
  Node& append(std::string_view op, std::string name, std::vector<std::byte> args);

  // Sets which rows the calls that follow work on.
  void set_live(LiveRows live) { live_ = live; }
  LiveRows live() const { return live_; }

  std::vector<Buffer>& buffers() { return buffers_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  std::vector<Node>& nodes() { return nodes_; }
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  LiveRows live_ = LiveRows::kAll;
  std::vector<Buffer> buffers_;
  std::vector<Node> nodes_;
};

// Computes the regions of a node's tiles, over its whole chain. It does the expensive part once. Parts of a
// chain hand on a fragment: the tensors between them have no buffer and so no region. The node must outlive
// the rule.
class NodeRule {
 public:
  explicit NodeRule(const Node& node);
  void append(const TileCoord& tile, std::vector<Region>& out) const;

 private:
  const Node* node_;
  std::vector<RegionRule> parts_;
};

std::vector<Region> node_regions(const Node& node, const TileCoord& tile);
// The number of items of its worker's stream that a tile loads: its panels, or kItemsFromData where an input
// chooses them.
u32 stream_items(const Node& node, const TileCoord& tile);
// The tile of part `index` when the main op has tile `tile` (an epilogue may halve the columns).
TileCoord part_tile(const Node& node, size_t index, const TileCoord& tile);
// Name such as "rms_norm+linear+rope".
std::string chain_name(const Node& node);

}  // namespace heddle
