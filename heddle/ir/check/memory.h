// Finds instructions that touch the same bytes. It sorts bytes into cells. A cell is a largest set of bytes
// that exactly the same places cover, so the check never has to look at anything finer.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "heddle/ir/check/form.h"

namespace heddle::proof {

// A region of mutable memory that an instruction touches.
struct Touch {
  u32 place = 0;   // the set of bytes; touches of equal bytes have equal places, whatever the buffer
  u32 region = 0;  // index into Form::regions
};

// Lists of different lengths in one vector.
struct Lists {
  std::vector<u32> begin = {0};
  std::vector<u32> items;

  std::span<const u32> operator[](u32 i) const {
    return std::span(items).subspan(begin[i], begin[i + 1] - begin[i]);
  }
  void close() { begin.push_back(u32(items.size())); }
  u32 size() const { return u32(begin.size() - 1); }
};

struct MemoryMap {
  std::vector<u32> touch_begin;  // by instruction; one more at the end
  std::vector<Touch> touches;    // by instruction: its reads, then its writes
  Lists cells;                   // by place
  u32 num_cells = 0;
  std::vector<u32> read_index;  // by place: dense number among the places that are read, or kNotRead
  u32 num_read = 0;
  Lists readers;  // by place that is written: read_index of each place that shares a cell with it
  // The number of indexed writes that a step makes, by (cell, call), and the number of writes to pages, by
  // cell.
  std::unordered_map<u64, u32> indexed_writes;
  std::unordered_map<u32, u32> page_writes;

  static constexpr u32 kNotRead = 0xffffffffu;
  static u64 key(u32 cell, u32 call) { return u64(cell) << 32 | call; }
  std::span<const Touch> touches_of(u32 id) const {
    return std::span(touches).subspan(touch_begin[id], touch_begin[id + 1] - touch_begin[id]);
  }
};

// Adds kDoesNotFit, and returns an empty map, when the regions have more pieces than the check accepts.
MemoryMap map_memory(const Form& form, Faults& faults);
// Checks that each step writes every byte of every output.
void check_outputs(const Form& form, Faults& faults);

}  // namespace heddle::proof
