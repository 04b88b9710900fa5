// Memory accesses in the order of one legal run: which tile wrote each cell last, which tiles have read it
// since, and whether the clocks order each new access after those it conflicts with. One run is enough: every
// wait is for the full count, so the order that clocks prove does not depend on the run.
#pragma once

#include <set>
#include <span>
#include <tuple>

#include "heddle/ir/check/clocks.h"
#include "heddle/ir/check/memory.h"

namespace heddle::proof {

// An instruction of a step that is about to access memory, with its worker's clock.
struct Event {
  u32 id = 0;
  u32 step = 0;  // 0 or 1
  u32 worker = 0;
  u32 at = 0;  // its position in its worker's clock
  const u32* known = nullptr;
};

class Accesses {
 public:
  Accesses(const Form& form, const MemoryMap& map, Faults& faults);

  void run(const Event& event);
  const CheckWork& work() const { return work_; }
  // Bytes of memory that an object of this class takes.
  static size_t bytes(const Form& form, const MemoryMap& map);

 private:
  static constexpr u32 kNone = 0xffffffffu;
  // A read checks places of at most this many cells cell by cell; larger places have a record.
  static constexpr size_t kFewCells = 8;

  struct Last {  // the last write of a cell
    u32 writer = kNone;
    u32 step = 0;
    u32 buffer = kNoBuffer;
    u32 group = kNone;

    bool operator==(const Last&) const = default;
  };
  // Indexed writes of one call in one step to a cell, or to cells that the same tiles have written so far.
  // They do not conflict with each other.
  struct Group {
    u32 call = 0, step = 0;
    size_t cells = 0;
    u32 made = 0, expected = 0;      // counts for each cell
    size_t before = 0, writers = 0;  // rows of group_clocks_
  };
  // Facts that a read of a place needs. They are valid until the place is written again.
  struct Record {
    u64 stamp = kNoStamp;
    u32 step = 0;
    u32 buffer = kNoBuffer;
    size_t need = 0;  // row of needs_
  };
  struct Page {  // a cell of a pages buffer
    u32 made = 0, expected = 0;
    size_t writers = 0;  // row of group_clocks_: writes in the first step
  };
  static constexpr u64 kNoStamp = ~u64{0};

  void read(const Event& event, const Touch& touch);
  void read_cell(const Event& event, const Touch& touch, u32 cell);
  void read_pages(const Event& event, const Touch& touch);
  bool make_record(const Event& event, const Touch& touch, Record& record);
  void write(const Event& event, const Touch& touch);
  void write_cell(const Event& event, const Touch& touch, u32 cell, Last& last);
  bool in_group(const Event& event, const Last& last) const;
  u32 indexed_writes(const Event& event, u32 cell) const;
  size_t alike(const Event& event, std::span<const u32> cells, size_t first_last) const;
  void join_group(const Event& event, const Touch& touch, std::span<const u32> cells, size_t first_last);
  u32 open_group(const Event& event, u32 cell, const Last& last);
  u32 split_group(u32 index, size_t cells);
  void write_page(const Event& event, u32 cell);

  void join(u32* into, const u32* other) { ++work_.clocks, proof::join(into, other, form_.workers()); }
  u32 first_beyond(const u32* needed, const u32* known) {
    return ++work_.clocks, proof::first_beyond(needed, known, form_.workers());
  }
  const Region& region(const Touch& touch) const { return form_.regions[touch.region]; }
  BufferKind kind(const Touch& touch) const { return form_.buffer(region(touch).buffer).kind; }
  u32 at(u32 id, u32 step) const;
  bool written_in_step(const Event& event, const Touch& touch, const Last& last) const;
  Page& page(u32 cell);

  // Reports.
  struct Other {  // the access that this one is not ordered after
    u32 worker, at;
  };
  void conflict(Rule rule, const Event& event, const Touch& touch, u32 cell, Other other);
  void incomplete(Rule rule, const Event& event, const Touch& touch, u32 cell, u32 call, u32 their_step);
  void not_written(const Event& event, const Touch& touch, u32 cell);
  std::vector<u32> writers_of(u32 cell, u32 buffer, u32 call) const;
  const Region* find_region(u32 id, Access access, const Touch& touch, u32 cell) const;
  bool covers(u32 place, u32 cell) const;
  bool first_report(Rule rule, u32 id, u32 other);
  std::string side(u32 id, u32 step, const Region& region) const;

  const Form& form_;
  const MemoryMap& map_;
  Faults& faults_;
  CheckWork work_;
  std::vector<Last> last_;       // by cell; the second half belongs to the second step and holds only pages
  Clocks reads_;                 // by read_index: the last read by each worker
  std::vector<u64> stamps_;      // by read_index: writes so far
  std::vector<Record> records_;  // by read_index
  Clocks needs_;
  std::vector<Group> groups_;
  Clocks group_clocks_;
  std::unordered_map<u32, Page> pages_;
  std::vector<u32> executed_;  // by worker: clock position of the last instruction that has run
  std::set<std::tuple<Rule, u32, u32>> reported_;
};

}  // namespace heddle::proof
