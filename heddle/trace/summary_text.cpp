// A summary as tables of 80 columns, and as JSON.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "heddle/base/json.h"
#include "heddle/trace/summary.h"

namespace heddle {
namespace {

struct Column {
  const char* heading;
  size_t width;
};

// Microseconds in five characters, where they are fewer than 100,000.
std::string us(double ns) {
  const double value = ns * 1e-3;
  return fmt::format("{:.{}f}", value, value < 999.95 ? 1 : 0);
}

std::string amount(double value) {
  if (value == 0) return "-";
  return fmt::format("{:.{}f}", value, value < 9.9995 ? 3 : value < 999.95 ? 1 : 0);
}

// A row: the name, which goes on in lines of its own where it is long, and cells.
std::string row(std::string_view name, std::span<const Column> columns, std::span<const std::string> cells) {
  size_t room = 80;
  for (const Column& column : columns) room -= column.width;
  std::string text;
  for (bool is_first = true; is_first || !name.empty(); is_first = false) {
    size_t end = name.size();
    if (end >= room) {
      end = name.substr(0, room).rfind(' ');
      if (end == name.npos || end == 0) end = room - 1;
    }
    const std::string part = std::string(is_first ? "" : "  ") + std::string(name.substr(0, end));
    name.remove_prefix(end);
    if (!is_first) {
      text += part + '\n';
    } else {
      text += fmt::format("{:<{}}", part, room);
      for (size_t i = 0; i < columns.size(); ++i) text += fmt::format("{:>{}}", cells[i], columns[i].width);
      text += '\n';
    }
  }
  return text;
}

std::string headings(const char* name, std::span<const Column> columns) {
  std::vector<std::string> cells;
  for (const Column& column : columns) cells.emplace_back(column.heading);
  return row(name, columns, cells);
}

constexpr Column kTimes[] = {{"calls", 6}, {"all", 7},     {"fetch", 6},   {"late", 6},  {"taken", 6},
                             {"hop", 6},   {"starved", 8}, {"compute", 8}, {"signal", 7}};
constexpr Column kRates[] = {{"busy", 7},    {"MB", 8},    {"MFLOP", 8},  {"GB/s", 7},
                             {"GFLOP/s", 8}, {"phase", 7}, {"loader", 7}, {"path", 7}};

std::string times_row(const WorkTimes& t) {
  std::vector<std::string> cells = {fmt::format("{:.0f}", t.calls)};
  for (const double ns : {t.sum(), t.fetch, t.late, t.taken, t.hop, t.starved, t.compute, t.signal})
    cells.push_back(us(ns));
  return row(t.ops, kTimes, cells);
}

std::string rates_row(const TraceSummary& summary, const WorkTimes& t) {
  const double ns = summary.busy(t);  // bytes and flops per nanosecond are 10^9 per second
  const auto rate = [ns](double what) { return ns > 0 && what > 0 ? fmt::format("{:.1f}", what / ns) : "-"; };
  const std::array<std::string, 8> cells = {us(ns),
                                            amount(t.bytes * 1e-6),
                                            amount(t.flops * 1e-6),
                                            rate(t.bytes),
                                            rate(t.flops),
                                            us(t.phase),
                                            us(t.load),
                                            us(t.path)};
  return row(t.ops, kRates, cells);
}

constexpr const char* kWords =
    "all: fetch to signal, together. compute: in the op's body, without starved.\n"
    "busy: starved and compute, of a unit: a core or SM. MB, MFLOP: as tiles declare;\n"
    "KV pages count the positions that are there. phase: from the first worker that\n"
    "was ready to the last that was done. loader: time of the loader of weights,\n"
    "next to all of these. path: on the critical path.\n";

Json json_of(const TraceSummary& summary, const WorkTimes& t) {
  return Json::object({{"op", t.ops},
                       {"calls", t.calls},
                       {"fetch_ns", t.fetch},
                       {"late_ns", t.late},
                       {"taken_ns", t.taken},
                       {"hop_ns", t.hop},
                       {"starved_ns", t.starved},
                       {"compute_ns", t.compute},
                       {"signal_ns", t.signal},
                       {"phase_ns", t.phase},
                       {"loader_ns", t.load},
                       {"path_ns", t.path},
                       {"busy_ns", summary.busy(t)},
                       {"bytes", t.bytes},
                       {"flops", t.flops}});
}

}  // namespace

std::string to_text(const TraceSummary& summary) {
  const WorkTimes all = summary.total();
  std::string text = fmt::format(
      "a step of {:.1f} us, {} of them, {} workers on {} units\n"
      "us of a step, means over the workers:\n",
      summary.step * 1e-3, summary.steps, summary.workers, summary.units);
  text += headings("op", kTimes);
  for (const WorkTimes& times : summary.work) text += times_row(times);
  text += times_row(all) + "\n" + headings("op", kRates);
  for (const WorkTimes& times : summary.work) text += rates_row(summary, times);
  text += rates_row(summary, all);
  text += "\nidle by cause, a worker's step\n";
  for (const IdleCause& cause : idle_causes(summary))
    text += fmt::format("  {:<8} {:10.1f} us {:5.1f} %  {}\n", cause.name, cause.ns * 1e-3,
                        summary.step > 0 ? 100 * cause.ns / summary.step : 0, cause.meaning);
  text += fmt::format("{}critical path: {} instructions of {} step{}, {:.1f} us a step\n", kWords,
                      summary.path.size(), summary.steps, summary.steps == 1 ? "" : "s", all.path * 1e-3);
  for (const std::string& body : summary.bodies) text += body + "\n";
  if (summary.lost > 0) text += fmt::format("{} events found no room and are left out\n", summary.lost);
  return text;
}

Json to_json(const TraceSummary& summary) {
  Json ops = Json::array(), idle = Json::array();
  for (const WorkTimes& times : summary.work) ops.push_back(json_of(summary, times));
  for (const IdleCause& cause : idle_causes(summary))
    idle.push_back(Json::object({{"cause", cause.name}, {"meaning", cause.meaning}, {"ns", cause.ns}}));
  return Json::object({{"steps", summary.steps},
                       {"workers", summary.workers},
                       {"units", summary.units},
                       {"step_ns", summary.step},
                       {"ops", ops},
                       {"all", json_of(summary, summary.total())},
                       {"idle", idle},
                       {"critical_path_instructions", summary.path.size()},
                       {"bodies", summary.bodies},
                       {"lost_events", summary.lost}});
}

}  // namespace heddle
