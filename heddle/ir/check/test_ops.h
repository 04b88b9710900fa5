// Ops and a builder for tests of the check. Each op is one way to touch memory and has no body.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "heddle/ir/check/form.h"
#include "heddle/ir/rules.h"

namespace heddle::proof {

// y = f(x, r) element by element; r need not exist.
struct TestMap {
  Tensor x, r, y;  // [M, N]
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N"), v.optional_read("r", s.r, "M, N"), v.write("y", s.y, "M, N");
  }
};

// y = x w^T + r; r need not exist.
struct TestDot {
  Tensor x;     // [M, K]
  Weight w;     // [N, K]
  Tensor r, y;  // [M, N]
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, K"), v.weight("w", s.w, "N, K"), v.optional_read("r", s.r, "M, N"),
        v.write("y", s.y, "M, N");
  }
};

// Rows of a table, chosen by tokens of the state.
struct TestLookUp {
  Tensor tokens;  // [M]
  Weight w;       // [V, D]
  Tensor y;       // [M, D]
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("tokens", s.tokens, "M", "i32"), v.weight("w", s.w, "V, D"), v.write("y", s.y, "M, D");
  }
};

// Writes rows of x to places in y that data chooses: pages, or an activation.
struct TestScatter {
  Tensor x;  // [M, D]
  Tensor y;  // [P, D]
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, D"), v.write("y", s.y, "P, D");
  }
};

// Reads all pages and rows of q.
struct TestAttend {
  Tensor q;      // [M, D]
  Tensor pages;  // [P, D]
  Tensor y;      // [M, D]
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("q", s.q, "M, D"), v.read("pages", s.pages, "P, D"), v.write("y", s.y, "M, D");
  }
};

// Chooses the next tokens.
struct TestSample {
  Tensor x;            // [M, V]
  Tensor tokens, out;  // [M]
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, V"), v.write("tokens", s.tokens, "M", "i32"), v.write("out", s.out, "M", "i32");
  }
};

template <class Args>
OpSpec test_op(const char* name) {
  OpSpec op = op_of<Args>(name, "for tests");
  op.infer = [](std::byte*) {};
  return op;
}

inline void scatter_regions(const std::byte* args, const TileCoord& tile, std::vector<Region>& out) {
  const auto& a = as<TestScatter>(args);
  const std::array<i32, 2> box[2] = {{tile[0], tile[1]}, {0, a.x.size[1]}};
  out.push_back(region_of(a.x, Access::kRead, box));
  out.push_back(whole(a.y, Access::kWrite, true));
}

inline void attend_regions(const std::byte* args, const TileCoord& tile, std::vector<Region>& out) {
  const auto& a = as<TestAttend>(args);
  const std::array<i32, 2> box[2] = {{tile[0], tile[1]}, {0, a.q.size[1]}};
  out.push_back(region_of(a.q, Access::kRead, box));
  out.push_back(whole(a.pages, Access::kRead, true));
  out.push_back(region_of(a.y, Access::kWrite, box));
}

inline const OpSpec* find_test_op(std::string_view name) {
  static const std::vector<OpSpec> ops = [] {
    std::vector<OpSpec> all = {test_op<TestMap>("map"),        test_op<TestDot>("dot"),
                               test_op<TestLookUp>("look_up"), test_op<TestScatter>("scatter"),
                               test_op<TestAttend>("attend"),  test_op<TestSample>("sample")};
    const auto rows = [](const std::byte* args, const TilingTarget&) -> std::vector<TileAxis> {
      return {{.dim = "M", .extent = reinterpret_cast<const Tensor*>(args)->size[0]}};
    };
    for (OpSpec& op : all) op.axes = rows;
    all[0].axes = [](const std::byte* args, const TilingTarget&) -> std::vector<TileAxis> {
      const Tensor& x = as<TestMap>(args).x;
      return {{.dim = "M", .extent = x.size[0]}, {.dim = "N", .extent = x.size[1]}};
    };
    all[1].axes = [](const std::byte* args, const TilingTarget&) -> std::vector<TileAxis> {
      const auto& a = as<TestDot>(args);
      return {{.dim = "M", .extent = a.x.size[0]},
              {.dim = "N", .extent = a.w.rows(), .unit = a.w.panel_rows}};
    };
    all[1].scratch = [](const std::byte*, const TileCoord& tile) -> i64 { return 4 * (tile[3] - tile[2]); };
    all[1].traits.main = true;
    all[3].regions = scatter_regions;
    all[4].regions = attend_regions;
    return all;
  }();
  for (const OpSpec& op : ops)
    if (name == op.name) return &op;
  return nullptr;
}

// Builds programs by hand. A test sets the fields that it wants to break; finish() fills in the rest.
class Builder {
 public:
  explicit Builder(i32 workers) {
    program_.topology = {.workers = workers};
    program_.shape = {.rows = 1024};  // room for the state that tests keep in the step record
    program_.workers.resize(size_t(workers));
  }

  Tensor tensor(std::string name, BufferKind kind, DType dtype, const std::vector<i32>& shape,
                i64 arena = -1) {
    Tensor tensor = dense(dtype, shape);
    i64 bytes = size_of(dtype);
    for (i32 size : shape) bytes *= size;
    tensor.buffer = u32(program_.buffers.size());
    program_.buffers.push_back({{.name = std::move(name), .kind = kind, .bytes = bytes}, arena});
    if (arena >= 0) program_.arena_bytes = std::max(program_.arena_bytes, arena + bytes);
    return tensor;
  }
  Tensor activation(std::string name, const std::vector<i32>& shape, i64 arena = -1) {
    return tensor(std::move(name), BufferKind::kActivation, DType::kF32, shape, arena);
  }
  Weight weight(std::string name, i32 rows, i32 cols, i32 panel_rows = 16) {
    Weight weight;
    weight.data = tensor(std::move(name), BufferKind::kWeight, DType::kBf16, {rows, cols});
    weight.panel_rows = panel_rows;
    return weight;
  }

  template <class Args>
  u32 call(const char* op, std::string name, const Args& args) {
    u16 opcode = 0;
    while (opcode < program_.opcodes.size() && program_.opcodes[opcode].ops[0] != op) ++opcode;
    const OpSpec* spec = find_test_op(op);
    if (opcode == program_.opcodes.size())
      program_.opcodes.push_back({{op}, 0, chain_hash(std::span(&spec, 1), 0)});
    std::vector<std::byte> bytes(sizeof(Args));
    std::memcpy(bytes.data(), &args, sizeof(Args));
    program_.calls.push_back({.opcode = opcode, .name = std::move(name), .args = {bytes}});
    return u32(program_.calls.size() - 1);
  }
  u32 counter() {
    program_.counters.emplace_back();
    return u32(program_.counters.size() - 1);
  }

  // Appends an instruction. The next calls of wait() and signal() belong to it.
  Builder& add(u32 worker, u32 call, TileCoord tile) {
    Instruction instruction{.opcode = program_.calls[call].opcode, .call = call};
    std::copy(std::begin(tile.at), std::end(tile.at), instruction.tile);
    return push(worker, instruction);
  }
  Builder& nop(u32 worker) { return push(worker, {.opcode = kNopOpcode}); }
  Builder& wait(u32 counter, EdgeKind kind = EdgeKind::kCounted, bool previous = false) {
    Instruction& last = program_.workers[worker_].back();
    int i = 0;
    while (last.waits[i].counter != kNoCounter) ++i;
    last.waits[i].counter = counter;
    last.set_wait_kind(i, kind);
    last.set_previous(i, previous);
    return *this;
  }
  Builder& signal(u32 counter, EdgeKind kind = EdgeKind::kCounted) {
    Instruction& last = program_.workers[worker_].back();
    last.signal = {counter, 1};
    last.set_signal_kind(kind);
    return *this;
  }

  Program& program() { return program_; }
  // Ends the streams; fills in totals, targets and stream items.
  Program finish() {
    Program program = program_;
    for (auto& stream : program.workers) {
      for (Instruction& instruction : stream)
        if (instruction.signal.counter != kNoCounter)
          program.counters[instruction.signal.counter].total += instruction.signal.amount;
      stream.push_back({});
    }
    std::vector<Node> nodes(program.calls.size());
    for (size_t c = 0; c < nodes.size(); ++c) {
      const Call& call = program.calls[c];
      nodes[c].parts = {{find_test_op(program.opcodes[call.opcode].ops[0]), call.args[0]}};
    }
    for (auto& stream : program.workers)
      for (Instruction& instruction : stream) {
        for (Wait& wait : instruction.waits)
          if (wait.counter != kNoCounter) wait.target = program.counters[wait.counter].total;
        TileCoord tile;
        std::copy(std::begin(instruction.tile), std::end(instruction.tile), tile.at);
        if (instruction.opcode < kNopOpcode)
          instruction.stream_items = stream_items(nodes[instruction.call], tile);
      }
    return program;
  }

 private:
  Builder& push(u32 worker, Instruction instruction) {
    worker_ = worker;
    program_.workers[worker].push_back(instruction);
    return *this;
  }

  Program program_;
  u32 worker_ = 0;
};

}  // namespace heddle::proof
