#include "heddle/ir/check/check_with.h"

#include "heddle/base/stopwatch.h"
#include "heddle/ir/check/homes.h"
#include "heddle/ir/check/order.h"

namespace heddle::proof {
namespace {

// Each part relies on what the parts before it have checked.
void check_all(const Program& program, FindOp find, Faults& faults, CheckReport& report) {
  const Form form = make_form(program, find, faults);
  report.instructions = form.size();
  if (!faults.empty()) return;
  const Edges edges = make_edges(form);
  for (size_t c = 0; c < edges.waits_this.size(); ++c)
    report.waits += edges.waits_this[c] + edges.waits_previous[c];
  check_edges(form, edges, faults);
  if (!faults.empty() || faults.left_out()) return;
  check_tiles(form, faults);
  check_homes(form, faults);
  const MemoryMap map = map_memory(form, faults);
  if (map.touch_begin.empty()) return;
  check_outputs(form, faults);
  report.work = check_order(form, edges, map, faults);
  report.work.cells += map.cells.items.size() + map.readers.items.size();
}

}  // namespace

CheckReport check_with(const Program& program, FindOp find, std::optional<Rule> without) {
  const Stopwatch watch;
  CheckReport report;
  Faults faults(without);
  check_all(program, find, faults, report);
  report.faults = faults.take();
  report.milliseconds = 1e3 * watch.seconds();
  return report;
}

}  // namespace heddle::proof
