#include "heddle/ir/check/memory.h"

#include <algorithm>

#include <xxhash.h>

namespace heddle::proof {
namespace {

// A set of bytes by address: pieces of `run` bytes in a space. The arena is space 0, other buffers their own.
struct Shape {
  i64 space = 0, offset = 0, run = 0;
  std::array<i64, 2> count = {1, 1}, stride = {0, 0};

  bool operator==(const Shape&) const = default;
  template <class F>
  void each_piece(F&& f) const {
    for (i64 i = 0; i < count[0]; ++i)
      for (i64 j = 0; j < count[1]; ++j) f(offset + i * stride[0] + j * stride[1]);
  }
};

struct HashShape {
  size_t operator()(const Shape& shape) const { return XXH3_64bits(&shape, sizeof(shape)); }
};

Shape shape_of(const Form& form, const Region& region) {
  const i64 arena = form.program->buffers[region.buffer].arena_offset;
  Shape shape{.space = arena >= 0 ? 0 : i64(region.buffer) + 1,
              .offset = region.offset + std::max<i64>(arena, 0),
              .run = region.run,
              .count = region.count,
              .stride = region.stride};
  // Data decides which pages a tile touches, so all of them count; that also keeps them in one piece.
  if (const Buffer& buffer = form.buffer(region.buffer); buffer.kind == BufferKind::kPages)
    shape.offset = 0, shape.run = buffer.bytes, shape.count = {1, 1};
  for (size_t d = 0; d < 2; ++d)
    if (shape.count[d] == 1) shape.stride[d] = 0;
  return shape;
}

class MapMemory {
 public:
  MapMemory(const Form& form, Faults& faults) : form_(form), faults_(faults) {}

  MemoryMap run() {
    gather();
    if (pieces_ > kMostPieces) return {};
    make_cells();
    index_readers();
    count_writers();
    return std::move(map_);
  }

 private:
  void gather() {
    for (u32 id = 0; id < form_.size(); ++id) {
      map_.touch_begin.push_back(u32(map_.touches.size()));
      for (Access access : {Access::kRead, Access::kWrite})
        for (const Region& region : form_.regions_of(id))
          if (region.access == access && region.run > 0 && !is_immutable(form_.buffer(region.buffer).kind))
            add_touch(region);
    }
    map_.touch_begin.push_back(u32(map_.touches.size()));
    if (pieces_ > kMostPieces)
      faults_.add(FaultKind::kDoesNotFit, "[program] its regions are {} pieces of memory; at most {}",
                  pieces_, kMostPieces);
  }

  void add_touch(const Region& region) {
    const Shape shape = shape_of(form_, region);
    const auto [entry, added] = places_.try_emplace(shape, u32(shapes_.size()));
    if (added) {
      shapes_.push_back(shape);
      written_.push_back(false);
      map_.read_index.push_back(MemoryMap::kNotRead);
      pieces_ += size_t(shape.count[0]) * size_t(shape.count[1]);
    }
    const u32 place = entry->second;
    if (region.access == Access::kWrite)
      written_[place] = true;
    else if (map_.read_index[place] == MemoryMap::kNotRead)
      map_.read_index[place] = map_.num_read++;
    map_.touches.push_back({place, u32(&region - form_.regions.data())});
  }

  // Makes the cells of all places, space by space.
  void make_cells() {
    std::vector<u32> order(shapes_.size());
    for (u32 p = 0; p < order.size(); ++p) order[p] = p;
    std::stable_sort(order.begin(), order.end(),
                     [&](u32 a, u32 b) { return shapes_[a].space < shapes_[b].space; });
    std::vector<std::vector<u32>> cells(shapes_.size());
    for (size_t i = 0; i < order.size();) {
      const size_t begin = i;
      while (i < order.size() && shapes_[order[i]].space == shapes_[order[begin]].space) ++i;
      divide(std::span(order).subspan(begin, i - begin), cells);
    }
    for (const auto& list : cells) {
      map_.cells.items.insert(map_.cells.items.end(), list.begin(), list.end());
      map_.cells.close();
    }
  }

  // Starts with one cell per segment between neighbouring ends of pieces. Each place then splits the cells
  // that it covers in part.
  void divide(std::span<const u32> places, std::vector<std::vector<u32>>& cells) {
    std::vector<i64> cuts;
    for (u32 place : places)
      shapes_[place].each_piece([&](i64 at) { cuts.push_back(at), cuts.push_back(at + shapes_[place].run); });
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    const u32 first = map_.num_cells;
    std::vector<u32> cell_of(cuts.size() - 1, first), segments;
    std::vector<u32> size = {u32(cell_of.size())}, covered = {0}, target = {0};  // by cell, less `first`
    std::vector<u32> seen(cell_of.size(), 0);  // by segment: 1 + the last place that covered it
    for (u32 place : places) {
      segments_of(place, cuts, seen, segments);
      for (u32 s : segments) ++covered[cell_of[s] - first];
      for (u32 s : segments) {
        const u32 cell = cell_of[s] - first;
        if (target[cell] == 0) {
          if (covered[cell] == size[cell]) continue;
          target[cell] = u32(size.size());
          size.push_back(0), covered.push_back(0), target.push_back(0);
        }
        --size[cell], ++size[target[cell]];
        touched_.push_back(cell);
        cell_of[s] = first + target[cell];
      }
      for (u32 cell : touched_) covered[cell] = target[cell] = 0;
      touched_.clear();
      for (u32 s : segments) covered[cell_of[s] - first] = 0;
    }
    map_.num_cells += u32(size.size());
    std::fill(seen.begin(), seen.end(), 0);
    std::vector<u32> last(size.size(), MemoryMap::kNotRead);  // by cell: the last place that listed it
    for (u32 place : places) {
      segments_of(place, cuts, seen, segments);
      for (u32 s : segments)
        if (last[cell_of[s] - first] != place)
          last[cell_of[s] - first] = place, cells[place].push_back(cell_of[s]);
    }
  }

  void segments_of(u32 place, const std::vector<i64>& cuts, std::vector<u32>& seen,
                   std::vector<u32>& out) const {
    out.clear();
    shapes_[place].each_piece([&](i64 at) {
      for (size_t s = size_t(std::lower_bound(cuts.begin(), cuts.end(), at) - cuts.begin());
           cuts[s] < at + shapes_[place].run; ++s)
        if (seen[s] != place + 1) seen[s] = place + 1, out.push_back(u32(s));
    });
  }

  void index_readers() {
    std::vector<std::vector<u32>> readers(map_.num_cells);  // by cell
    for (u32 place = 0; place < map_.cells.size(); ++place)
      if (map_.read_index[place] != MemoryMap::kNotRead)
        for (u32 cell : map_.cells[place]) readers[cell].push_back(map_.read_index[place]);
    std::vector<u32> last(map_.num_read, MemoryMap::kNotRead);
    for (u32 place = 0; place < map_.cells.size(); ++place) {
      if (written_[place])
        for (u32 cell : map_.cells[place])
          for (u32 reader : readers[cell])
            if (last[reader] != place) last[reader] = place, map_.readers.items.push_back(reader);
      map_.readers.close();
    }
  }

  // Tiles of a call often write the same places, so this counts places first and then their cells.
  void count_writers() {
    std::unordered_map<u64, u32> by_call;  // places
    for (u32 id = 0; id < form_.size(); ++id)
      for (const Touch& touch : map_.touches_of(id)) {
        const Region& region = form_.regions[touch.region];
        if (region.access != Access::kWrite) continue;
        if (region.indexed) ++by_call[MemoryMap::key(touch.place, form_.instruction(id).call)];
        if (form_.buffer(region.buffer).kind == BufferKind::kPages)
          for (u32 cell : map_.cells[touch.place]) ++map_.page_writes[cell];
      }
    for (const auto& [key, writes] : by_call)
      for (u32 cell : map_.cells[u32(key >> 32)])
        map_.indexed_writes[MemoryMap::key(cell, u32(key))] += writes;
  }

  const Form& form_;
  Faults& faults_;
  MemoryMap map_;
  std::unordered_map<Shape, u32, HashShape> places_;
  std::vector<Shape> shapes_;  // by place
  std::vector<bool> written_;  // by place
  std::vector<u32> touched_;
  size_t pieces_ = 0;
};

}  // namespace

MemoryMap map_memory(const Form& form, Faults& faults) {
  return MapMemory(form, faults).run();
}

void check_outputs(const Form& form, Faults& faults) {
  std::vector<std::vector<std::array<i64, 2>>> written(form.program->buffers.size());
  for (const Region& region : form.regions) {
    if (region.access != Access::kWrite || form.buffer(region.buffer).kind != BufferKind::kOutput) continue;
    Shape shape{.offset = region.offset, .run = region.run, .count = region.count, .stride = region.stride};
    shape.each_piece([&](i64 at) { written[region.buffer].push_back({at, at + shape.run}); });
  }
  for (u32 buffer = 0; buffer < written.size(); ++buffer) {
    if (form.buffer(buffer).kind != BufferKind::kOutput) continue;
    auto& pieces = written[buffer];
    std::sort(pieces.begin(), pieces.end());
    pieces.push_back({form.buffer(buffer).bytes, form.buffer(buffer).bytes});
    i64 end = 0;
    for (const auto& [from, to] : pieces) {
      if (from > end) {
        faults.add(Rule::kOutputsWritten, FaultKind::kNotWritten,
                   "[{}] no instruction writes bytes [{}, {}) of this output", form.buffer(buffer).name, end,
                   from);
        break;
      }
      end = std::max(end, to);
    }
  }
}

}  // namespace heddle::proof
