#include "apps/heddle/measure/schedule_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/heddle/measure/schedule_page_sources.h"
#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/trace/page_frame.h"

namespace heddle {
namespace {

// Names of nodes, with the op of each.
Json nodes_of(const Program& program) {
  Json nodes = Json::array();
  for (const Call& call : program.calls)
    nodes.push_back(Json::object({{"name", call.name}, {"op", call.opcode}}));
  return nodes;
}

// Five numbers for each tile of the second step: when it began to wait, began to run and ended, in
// nanoseconds from the beginning of the step; its node; whether it is on the critical path.
Json lanes_of(const PlannedSchedule& schedule) {
  std::vector<std::vector<bool>> on_path;
  for (const auto& stream : schedule.program.workers) on_path.emplace_back(stream.size());
  for (const PathTile& step : schedule.prediction.path) on_path[step.worker][step.instruction] = true;
  const double begin = schedule.prediction.begin;
  Json lanes = Json::array();
  for (const TraceLane& lane : schedule.prediction.trace.lanes) {
    Json events = Json::array();
    for (const TraceEvent& event : lane.events) {
      if (event.epoch != 2) continue;
      const Instruction& instruction = schedule.program.workers[lane.worker][event.instruction];
      for (u64 at : {event.fetched, event.ready, event.done}) events.push_back(i64(at) - i64(begin));
      events.push_back(instruction.call);
      events.push_back(int(on_path[lane.worker][event.instruction]));
    }
    lanes.push_back(std::move(events));
  }
  return lanes;
}

Json data_of(const std::string& title, std::span<const PlannedSchedule> schedules) {
  const Program& first = schedules.front().program;
  Json data = Json::object(
      {{"title", title}, {"nodes", nodes_of(first)}, {"ops", Json::array()}, {"policies", Json::array()}});
  for (const Opcode& opcode : first.opcodes)
    data["ops"].push_back(fmt::format("{}", fmt::join(opcode.ops, "+")));
  data["ops"].push_back("wait alone");
  for (const PlannedSchedule& schedule : schedules) {
    const Prediction& p = schedule.prediction;
    data["policies"].push_back(Json::object(
        {{"name", schedule.policy},
         {"step", p.step},
         {"facts",
          fmt::format("predicted: a step of {:.1f} us; workers busy {:.0f} %; critical path {:.1f} us of "
                      "work, {:.1f} us in {} messages",
                      p.step * 1e-3, 100 * p.busy, p.path_work * 1e-3, p.path_messages * 1e-3, p.messages)},
         {"lanes", lanes_of(schedule)}}));
  }
  return data;
}

}  // namespace

std::string schedule_page(const std::string& title, std::span<const PlannedSchedule> schedules) {
  const std::span<const EmbeddedFile> sources = schedule_page_sources();
  HEDDLE_CHECK(sources.size() == 1);
  return fill_frame(sources.front().text, {{"schedules", json_in_page(data_of(title, schedules))}});
}

}  // namespace heddle
