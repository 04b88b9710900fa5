#include "heddle/ir/check/access.h"

namespace heddle::proof {

Accesses::Accesses(const Form& form, const MemoryMap& map, Faults& faults)
    : form_(form),
      map_(map),
      faults_(faults),
      last_(2 * size_t(map.num_cells)),
      reads_(form.workers(), map.num_read),
      stamps_(map.num_read, 0),
      records_(map.num_read),
      needs_(form.workers()),
      group_clocks_(form.workers()),
      executed_(form.workers(), 0) {}

size_t Accesses::bytes(const Form& form, const MemoryMap& map) {
  const size_t groups = 2 * (2 * map.indexed_writes.size() + map.page_writes.size());
  return (2 * map.num_read + groups) * form.workers() * sizeof(u32);
}

u32 Accesses::at(u32 id, u32 step) const {
  const u32 worker = form_.worker_of[id];
  return step * form_.length(worker) + id - form_.first[worker] + 1;
}

void Accesses::run(const Event& event) {
  for (const Touch& touch : map_.touches_of(event.id))
    region(touch).access == Access::kRead ? read(event, touch) : write(event, touch);
  executed_[event.worker] = event.at;
}

bool Accesses::written_in_step(const Event& event, const Touch& touch, const Last& last) const {
  const BufferKind buffer_kind = kind(touch);
  if (buffer_kind != BufferKind::kActivation && buffer_kind != BufferKind::kOutput) return true;
  return last.writer != kNone && last.step == event.step && last.buffer == region(touch).buffer;
}

void Accesses::read(const Event& event, const Touch& touch) {
  if (kind(touch) == BufferKind::kPages) return read_pages(event, touch);
  const u32 index = map_.read_index[touch.place];
  const auto cells = map_.cells[touch.place];
  const auto each_cell = [&] {
    work_.cells += cells.size();
    for (u32 cell : cells) read_cell(event, touch, cell);
  };
  Record& record = records_[index];
  if (cells.size() <= kFewCells || !make_record(event, touch, record)) {
    each_cell();
  } else {
    const u32 width = form_.workers();
    if (first_beyond(needs_[record.need], event.known) < width) each_cell();
  }
  reads_[index][event.worker] = event.at;
}

// Returns false when cells have to be examined one by one, because some were not written correctly.
bool Accesses::make_record(const Event& event, const Touch& touch, Record& record) {
  const u32 index = map_.read_index[touch.place], buffer = region(touch).buffer;
  if (record.stamp == stamps_[index] && record.step == event.step && record.buffer == buffer) return true;
  if (record.buffer == kNoBuffer) record.need = needs_.add();
  record.stamp = kNoStamp;
  record.step = event.step;
  record.buffer = buffer;
  u32* need = needs_[record.need];
  needs_.clear(record.need);
  u32 joined = kNone;
  work_.cells += map_.cells[touch.place].size();
  for (u32 cell : map_.cells[touch.place]) {
    const Last& last = last_[cell];
    if (!written_in_step(event, touch, last)) return false;
    if (last.writer == kNone) continue;
    if (last.group != kNone) {
      const Group& group = groups_[last.group];
      if (group.made < group.expected) return false;
      if (last.group != joined) join(need, group_clocks_[group.writers]);
      joined = last.group;
    }
    u32& known = need[form_.worker_of[last.writer]];
    known = std::max(known, at(last.writer, last.step));
  }
  record.stamp = stamps_[index];
  return true;
}

void Accesses::read_cell(const Event& event, const Touch& touch, u32 cell) {
  const Last& last = last_[cell];
  if (!written_in_step(event, touch, last)) return not_written(event, touch, cell);
  if (last.writer == kNone) return;  // the host wrote it before the launch
  const u32 width = form_.workers();
  if (last.group != kNone) {
    const Group& group = groups_[last.group];
    if (group.made < group.expected)
      return incomplete(Rule::kReadAfterParts, event, touch, cell, group.call, group.step);
    const u32* writers = group_clocks_[group.writers];
    const u32 worker = first_beyond(writers, event.known);
    if (worker < width) conflict(Rule::kReadAfterParts, event, touch, cell, {worker, writers[worker]});
    return;
  }
  const u32 worker = form_.worker_of[last.writer], their_at = at(last.writer, last.step);
  if (event.known[worker] < their_at) conflict(Rule::kReadAfterWrite, event, touch, cell, {worker, their_at});
}

// Reads mean the positions before this step. They must come after everything that the previous step wrote;
// nothing that this step writes counts.
void Accesses::read_pages(const Event& event, const Touch& touch) {
  if (event.step == 0) return;
  const u32 width = form_.workers();
  work_.cells += map_.cells[touch.place].size();
  for (u32 cell : map_.cells[touch.place]) {
    if (!map_.page_writes.contains(cell)) continue;
    const Page& written = page(cell);
    if (written.made < written.expected) {
      incomplete(Rule::kReadOfPages, event, touch, cell, kNone, 0);
      continue;
    }
    const u32* writers = group_clocks_[written.writers];
    const u32 worker = first_beyond(writers, event.known);
    if (worker < width) conflict(Rule::kReadOfPages, event, touch, cell, {worker, writers[worker]});
  }
}

Accesses::Page& Accesses::page(u32 cell) {
  const auto [entry, added] = pages_.try_emplace(cell);
  if (added) entry->second = {0, map_.page_writes.at(cell), group_clocks_.add()};
  return entry->second;
}

void Accesses::write(const Event& event, const Touch& touch) {
  const bool pages = kind(touch) == BufferKind::kPages;
  const u32 width = form_.workers();
  work_.cells += map_.cells[touch.place].size() + map_.readers[touch.place].size();
  if (!pages)
    for (u32 reader : map_.readers[touch.place]) {
      ++stamps_[reader];
      const u32 worker = first_beyond(reads_[reader], event.known);
      if (worker < width)
        conflict(Rule::kWriteAfterRead, event, touch, kNone, {worker, reads_[reader][worker]});
    }
  // The rows of two steps are different bytes of the pages (the host ensures that), so each step has its own
  // cells.
  const size_t first_last = pages && event.step == 1 ? map_.num_cells : 0;
  const std::span<const u32> cells = map_.cells[touch.place];
  for (size_t i = 0; i < cells.size();) {
    const size_t parts = region(touch).indexed ? alike(event, cells.subspan(i), first_last) : 0;
    if (parts > 0)
      join_group(event, touch, cells.subspan(i, parts), first_last);
    else
      write_cell(event, touch, cells[i], last_[cells[i] + first_last]);
    i += std::max<size_t>(1, parts);
  }
  if (pages)
    for (u32 cell : cells) write_page(event, cell);
}

bool Accesses::in_group(const Event& event, const Last& last) const {
  return last.group != kNone && groups_[last.group].call == form_.instruction(event.id).call &&
         groups_[last.group].step == event.step;
}

// Counts the indexed writes that the event's call makes to a cell in a step.
u32 Accesses::indexed_writes(const Event& event, u32 cell) const {
  return map_.indexed_writes.at(MemoryMap::key(cell, form_.instruction(event.id).call));
}

// Counts the first cells that are alike: several tiles of the call write a part of each, which only the step
// record tells, and the same tiles have written them so far. 0: the first cell belongs to this tile alone.
size_t Accesses::alike(const Event& event, std::span<const u32> cells, size_t first_last) const {
  const Last& first = last_[cells[0] + first_last];
  const bool joined = in_group(event, first);
  const u32 expected = joined ? 0 : indexed_writes(event, cells[0]);
  if (expected == 1) return 0;
  size_t count = 1;
  while (count < cells.size() && last_[cells[count] + first_last] == first &&
         (joined || indexed_writes(event, cells[count]) == expected))
    ++count;
  return count;
}

void Accesses::write_page(const Event& event, u32 cell) {
  if (event.step != 0) return;
  Page& written = page(cell);
  ++written.made;
  group_clocks_[written.writers][event.worker] = event.at;
}

void Accesses::write_cell(const Event& event, const Touch& touch, u32 cell, Last& last) {
  const u32 width = form_.workers();
  if (last.group != kNone) {
    const u32* writers = group_clocks_[groups_[last.group].writers];
    const u32 worker = first_beyond(writers, event.known);
    if (worker < width) conflict(Rule::kWriteAfterWrite, event, touch, cell, {worker, writers[worker]});
  } else if (last.writer != kNone) {
    const u32 worker = form_.worker_of[last.writer], their_at = at(last.writer, last.step);
    if (event.known[worker] < their_at)
      conflict(Rule::kWriteAfterWrite, event, touch, cell, {worker, their_at});
  }
  last = {event.id, event.step, region(touch).buffer, kNone};
}

// Takes cells that are alike.
void Accesses::join_group(const Event& event, const Touch& touch, std::span<const u32> cells,
                          size_t first_last) {
  const Last& last = last_[cells[0] + first_last];
  u32 index = last.group;
  if (!in_group(event, last)) {
    index = open_group(event, cells[0], last);
    groups_[index].cells = cells.size();
  } else if (cells.size() < groups_[index].cells) {
    index = split_group(index, cells.size());
  }
  Group& group = groups_[index];
  const u32* before = group_clocks_[group.before];
  const u32 worker = first_beyond(before, event.known);
  if (worker < form_.workers())
    conflict(Rule::kWriteAfterWrite, event, touch, cells[0], {worker, before[worker]});
  ++group.made;
  group_clocks_[group.writers][event.worker] = event.at;
  for (u32 cell : cells) last_[cell + first_last] = {event.id, event.step, region(touch).buffer, index};
}

u32 Accesses::open_group(const Event& event, u32 cell, const Last& last) {
  Group group{.call = form_.instruction(event.id).call,
              .step = event.step,
              .expected = indexed_writes(event, cell),
              .before = group_clocks_.add(),
              .writers = group_clocks_.add()};
  u32* before = group_clocks_[group.before];
  if (last.group != kNone)
    join(before, group_clocks_[groups_[last.group].writers]);
  else if (last.writer != kNone)
    before[form_.worker_of[last.writer]] = at(last.writer, last.step);
  groups_.push_back(group);
  return u32(groups_.size() - 1);
}

// Makes a group of its own from this many cells of a group.
u32 Accesses::split_group(u32 index, size_t cells) {
  Group part = groups_[index];
  part.cells = cells;
  part.before = group_clocks_.add();
  part.writers = group_clocks_.add();
  join(group_clocks_[part.before], group_clocks_[groups_[index].before]);
  join(group_clocks_[part.writers], group_clocks_[groups_[index].writers]);
  groups_[index].cells -= cells;
  groups_.push_back(part);
  return u32(groups_.size() - 1);
}

}  // namespace heddle::proof
