// Writes the message of a fault that Accesses finds. Nothing here needs to be fast.
#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/ir/check/access.h"

namespace heddle::proof {

bool Accesses::covers(u32 place, u32 cell) const {
  const auto cells = map_.cells[place];
  return std::find(cells.begin(), cells.end(), cell) != cells.end();
}

// Finds a region of an instruction on the cell; if the cell is kNone, on any cell of the touch.
const Region* Accesses::find_region(u32 id, Access access, const Touch& touch, u32 cell) const {
  for (const Touch& theirs : map_.touches_of(id)) {
    if (region(theirs).access != access) continue;
    if (cell != kNone && covers(theirs.place, cell)) return &region(theirs);
    if (cell != kNone) continue;
    for (u32 mine : map_.cells[touch.place])
      if (covers(theirs.place, mine)) return &region(theirs);
  }
  return nullptr;
}

// Instructions that write the cell, for one buffer and call; kNoBuffer and kNone: any.
std::vector<u32> Accesses::writers_of(u32 cell, u32 buffer, u32 call) const {
  std::vector<bool> on_cell(map_.cells.size());
  for (u32 place = 0; place < on_cell.size(); ++place) on_cell[place] = covers(place, cell);
  std::vector<u32> writers;
  for (u32 id = 0; id < form_.size(); ++id) {
    if (call != kNone && form_.instruction(id).call != call) continue;
    for (const Touch& touch : map_.touches_of(id))
      if (region(touch).access == Access::kWrite && on_cell[touch.place] &&
          (buffer == kNoBuffer || region(touch).buffer == buffer)) {
        writers.push_back(id);
        break;
      }
  }
  return writers;
}

bool Accesses::first_report(Rule rule, u32 id, u32 other) {
  return reported_.emplace(rule, id, other).second;
}

std::string Accesses::side(u32 id, u32 step, const Region& region) const {
  const char* verb = region.access == Access::kRead ? "reads" : "writes";
  return fmt::format("{} {} bytes [{}, {}) of {} in step {}", form_.place(id), verb, region.offset,
                     region.end(), form_.buffer(region.buffer).name, step + 1);
}

// Reports an access that is not ordered after another one, at a place of the other worker's clock. Without a
// cell the other access is a read.
void Accesses::conflict(Rule rule, const Event& event, const Touch& touch, u32 cell, Other than) {
  const u32 length = form_.length(than.worker);
  const u32 other = form_.first[than.worker] + (than.at - 1) % length, step = (than.at - 1) / length;
  const Region* theirs = find_region(other, cell == kNone ? Access::kRead : Access::kWrite, touch, cell);
  HEDDLE_CHECK(theirs != nullptr);
  const Region& mine = region(touch);
  const bool reuse = theirs->buffer != mine.buffer;
  if (!first_report(rule, event.id, other)) return;
  faults_.add(rule, reuse ? FaultKind::kLiveReuse : FaultKind::kRace, "{}, but nothing orders it after {}{}",
              side(event.id, event.step, mine), side(other, step, *theirs),
              reuse ? "; they share arena bytes" : "");
}

// Reports a read that runs before all the writes that it must come after.
void Accesses::incomplete(Rule rule, const Event& event, const Touch& touch, u32 cell, u32 call,
                          u32 their_step) {
  for (u32 other : writers_of(cell, kNoBuffer, call))
    if (executed_[form_.worker_of[other]] < at(other, their_step))
      return conflict(rule, event, touch, cell, {form_.worker_of[other], at(other, their_step)});
}

// Reports a read of bytes that no instruction has written through its buffer in its step so far.
void Accesses::not_written(const Event& event, const Touch& touch, u32 cell) {
  const Region& mine = region(touch);
  const Last& last = last_[cell];
  u32 before = kNone, after = kNone;
  for (u32 other : writers_of(cell, mine.buffer, kNone))
    (other != event.id && executed_[form_.worker_of[other]] >= at(other, event.step) ? before : after) =
        other;
  if (before != kNone) {  // written, and then overwritten
    const u32 worker = form_.worker_of[last.writer];
    if (event.known[worker] < at(last.writer, last.step))
      return conflict(Rule::kWritten, event, touch, cell, {worker, at(last.writer, last.step)});
    if (first_report(Rule::kWritten, event.id, last.writer))
      faults_.add(Rule::kWritten, FaultKind::kLiveReuse, "{}, written by {}, but before that {}",
                  side(event.id, event.step, mine), form_.place(before),
                  side(last.writer, last.step, *find_region(last.writer, Access::kWrite, touch, cell)));
  } else if (after != kNone && form_.worker_of[after] != event.worker) {
    conflict(Rule::kWritten, event, touch, cell, {form_.worker_of[after], at(after, event.step)});
  } else if (first_report(Rule::kWritten, event.id, after)) {
    faults_.add(Rule::kWritten, FaultKind::kNotWritten, "{}, {}", side(event.id, event.step, mine),
                after == kNone ? "some of which no instruction writes"
                               : fmt::format("which {} writes only later", form_.place(after)));
  }
}

}  // namespace heddle::proof
