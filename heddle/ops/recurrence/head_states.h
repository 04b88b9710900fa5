// Parts of ops whose heads keep a state from step to step. Args has `step`, `state`, `sequences` and y [M, heads * rows], and
// memory [2 * slots, heads, rows, columns]: after position p of a sequence its state is at 2 * slot + p % 2, so that a step may be
// run again. A tile is some rows of the state of a head, for one sequence.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "heddle/ir/rules.h"
#include "heddle/ir/step.h"

namespace heddle {

constexpr i32 kPreparedRows = 16;  // rows of a step that the bodies prepare at a time: their kRows

template <class Args>
std::vector<TileAxis> head_state_axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Args>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.sequences},
          {.kind = TileAxis::Kind::kIndex, .extent = a.memory.size[1]},
          {.extent = a.memory.size[2], .unit = 16, .preferred = 32}};
}

// The bytes that a tile touches. The step record says which rows are a sequence's, and which slot.
template <class Args>
struct HeadStateRegions {
  const Args& a;
  const TileCoord& t;
  std::vector<Region>& out;

  i32 head() const { return t[1]; }
  void columns(const Tensor& tensor, i32 begin, i32 end) {
    out.push_back(part_of(tensor, Access::kRead, {{0, tensor.size[0]}, {begin, end}}));
  }
  void of_head(const Tensor& tensor) {
    out.push_back(part_of(tensor, Access::kRead, {{head(), head() + 1}}));
  }
  void records() {
    out.push_back(whole(a.step, Access::kRead));
    out.push_back(whole(a.state, Access::kRead));
  }
  void states_and_result() {
    const i32 y = head() * a.memory.size[2];
    const std::initializer_list<std::array<i32, 2>> states = {
        {0, a.memory.size[0]}, {head(), head() + 1}, {t[2], t[3]}, {0, a.memory.size[3]}};
    out.push_back(part_of(a.memory, Access::kRead, states));
    for (Region region : {part_of(a.memory, Access::kWrite, states),
                          part_of(a.y, Access::kWrite, {{0, a.y.size[0]}, {y + t[2], y + t[3]}})}) {
      region.indexed = true;
      out.push_back(region);
    }
  }
};
template <class Args>
HeadStateRegions(const Args&, const TileCoord&, std::vector<Region>&) -> HeadStateRegions<Args>;

// For a reference: calls f(head, row, the head's state [rows * columns], y of the row and head [rows]) for the rows of each
// sequence in order, with the state of the row before, and stores memory and y.
template <class Args, class F>
void each_head_state(const Args& a, Values& values, F&& f) {
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  auto memory = values.read(a.memory), y = values.read(a.y);
  const size_t heads = size_t(a.memory.size[1]), rows = size_t(a.memory.size[2]),
               size = rows * size_t(a.memory.size[3]);
  for (i32 s = 0; s < host.sequences; ++s)
    for (size_t head = 0; head < heads; ++head) {
      const StepSequence& sequence = *host.sequence(s);
      const i32 first = sequence.row_begin, last = first + sequence.row_count;
      const auto place = [&](i32 position) {
        return std::span(memory).subspan((size_t(2 * sequence.slot + position % 2) * heads + head) * size,
                                         size);
      };
      const i32 start = device.position()[first];
      std::vector<double> state(size);
      if (start > 0) std::ranges::copy(place(start - 1), state.begin());
      for (i32 row = first; row < last; ++row)
        f(i32(head), row, std::span(state), std::span(y).subspan((size_t(row) * heads + head) * rows, rows));
      std::ranges::copy(state, place(start + last - first - 1).begin());
    }
  values.write(a.memory, memory);
  values.write(a.y, y);
}

}  // namespace heddle
