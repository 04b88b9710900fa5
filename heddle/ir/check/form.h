// The form of a program: every index, size, opcode and kind is valid, and every region lies in its buffer. A
// program from a file is not trusted until this has passed; after that, code may walk it without further
// checks.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "heddle/ir/check/faults.h"
#include "heddle/ir/program/program.h"

namespace heddle::proof {

using FindOp = const OpSpec* (*)(std::string_view name);

// Limits of the programs that the check accepts. Clocks take workers x workers words.
constexpr i32 kMostWorkers = 4096;
constexpr i64 kMostBytes = i64{1} << 46;         // bytes of one buffer or of the arena
constexpr size_t kMostPieces = size_t{1} << 24;  // contiguous runs in all distinct regions together
// total of a counter; keeps comparisons safe when counters wrap
constexpr u32 kMostOfACounter = u32{1} << 30;

struct CallForm {
  Node node;
  std::optional<NodeRule> rule;
  std::vector<std::vector<TileAxis>> axes;  // axes of each part
  std::vector<u32> instructions;            // instructions that work on this call
};

// A program together with the meaning of its instructions. Instructions are numbered across workers.
struct Form {
  const Program* program = nullptr;
  std::vector<CallForm> calls;
  std::vector<u32> first;         // first instruction of each worker; the last entry is the number of all
  std::vector<u32> worker_of;     // by instruction
  std::vector<u32> region_begin;  // by instruction, into regions; one more at the end
  std::vector<Region> regions;

  u32 size() const { return u32(worker_of.size()); }
  u32 workers() const { return u32(first.size() - 1); }
  u32 length(u32 worker) const { return first[worker + 1] - first[worker]; }
  const Instruction& instruction(u32 id) const {
    return program->workers[worker_of[id]][id - first[worker_of[id]]];
  }
  std::span<const Region> regions_of(u32 id) const {
    return std::span(regions).subspan(region_begin[id], region_begin[id + 1] - region_begin[id]);
  }
  const Buffer& buffer(u32 index) const { return program->buffers[index].info; }
  std::string place(u32 id) const { return place_of(*program, worker_of[id], id - first[worker_of[id]]); }
};

// Adds kMalformed, kOutOfBounds and kDoesNotFit faults. The form is complete only if it added none.
Form make_form(const Program& program, FindOp find, Faults& faults);

// Checks topology, buffers, opcodes and homes: the part that does not need the streams.
void check_tables(const Program& program, Faults& faults);
// Resolves the calls: ops, arguments, shapes, axes.
void check_calls(const Program& program, FindOp find, Form& form, Faults& faults);
// Checks that the tiles of each call cover its axes, each element once.
void check_tiles(const Form& form, Faults& faults);

// Text of the part of a tile that one axis spans: "M 0..16".
std::string tile_text(std::span<const TileAxis> axes, const TileCoord& tile);

}  // namespace heddle::proof
