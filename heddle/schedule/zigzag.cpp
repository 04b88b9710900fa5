// Goes node by node, the most expensive tiles first. Tiles without a home go along the workers and back
// again, so that the worker with the most expensive tile of one pass gets the cheapest of the next.
#include <numeric>

#include "heddle/schedule/schedule.h"

namespace heddle::zigzag {
namespace {

Schedule run(const ScheduleInput& input) {
  std::vector<u32> order(input.tiles.size());
  std::iota(order.begin(), order.end(), 0u);
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && input.tiles[end].node == input.tiles[begin].node) ++end;
    sort_by_cost(input, std::span(order).subspan(begin, end - begin));
    begin = end;
  }
  return deal(input, order, [&](u32 k) {
    const u32 at = k % (2 * input.workers);
    return at < input.workers ? at : 2 * input.workers - 1 - at;
  });
}

}  // namespace

const Scheduler& scheduler() {
  static const Scheduler scheduler = {
      "zigzag", "graph order, dearest first; free tiles along the workers and back", run};
  return scheduler;
}

}  // namespace heddle::zigzag
