// A program: one stream of instructions per worker, and the records that they refer to. It holds no addresses
// and nothing of the machine that built it, so it can be saved, compared and loaded elsewhere.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/ir/graph.h"
#include "heddle/ir/instruction.h"
#include "heddle/ir/step.h"

namespace heddle {

constexpr u32 kProgramVersion = 4;

// The meaning of an opcode in this program: a chain of ops.
struct Opcode {
  std::vector<std::string> ops;
  u32 main = 0;
  u64 hash = 0;          // hash of the ops' names and argument layouts
  OpConfig config = {};  // the main op's; without values: its default

  std::string text() const;  // "rms_norm+linear", "linear (columns=64,stages=3)"
};

// The arguments of a call: one blob for each op of its opcode's chain.
struct Call {
  u16 opcode = 0;
  std::string name;  // the graph node's name
  LiveRows live = LiveRows::kAll;
  std::vector<std::vector<std::byte>> args;
};

// A buffer and its place. The arena is one space, for activations that may share memory by lifetime; every
// other buffer is a space of its own.
struct ProgramBuffer {
  Buffer info;
  i64 arena_offset = -1;  // bytes from the beginning of the arena; -1: memory of its own
};

struct CounterInfo {
  u32 total = 0;  // sum of its producers' amounts in one step
};

// A part of a buffer that belongs to one worker: rows of a resident tensor, or panels of a weight.
struct Home {
  u32 buffer = kNoBuffer;
  i64 begin = 0, end = 0;  // bytes
  i64 period = 0;  // begin and end repeat every `period` bytes (columns of a resident matrix); 0: once
  u32 worker = 0;
};

// The workers that a program is made for.
struct Topology {
  i32 workers = 1;
  i64 worker_memory = 0;  // on-chip memory of a worker in bytes; 0: no limit
  i64 ring_bytes = 0;     // the ring's part of worker_memory

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("workers", s.workers), v("worker_memory", s.worker_memory), v("ring_bytes", s.ring_bytes);
  }
};

struct Program {
  std::string name;
  Topology topology;
  StepShape shape;
  i64 arena_bytes = 0;
  std::vector<Opcode> opcodes;
  std::vector<ProgramBuffer> buffers;
  std::vector<Call> calls;
  std::vector<CounterInfo> counters;
  std::vector<Home> homes;
  std::vector<std::vector<Instruction>> workers;  // each ends with kEndOpcode

  size_t num_instructions() const;
  // Text for messages: "opcode 3 linear, node layers.0.qkv, tile [0, 1, 0, 96)".
  std::string describe(const Instruction& instruction) const;
  Node node_of(const Call& call) const;  // looks the ops up in the registry; throws when one is missing
};

u64 chain_hash(const std::vector<std::string>& ops, u32 main);
u64 chain_hash(std::span<const OpSpec* const> ops, u32 main);

// Saves and loads the `.heddle` file: little-endian, versioned, without addresses. The same program gives the
// same bytes. Loading throws Error when the file was cut, was changed, or was made with other ops; the check
// then proves the program.
void save_program(const Program& program, const std::string& path);
Program load_program(const std::string& path);
std::string serialise_program(const Program& program);
Program parse_program(std::string_view bytes, const std::string& where);
std::string frame_program(std::string_view fields);  // adds the header

}  // namespace heddle
