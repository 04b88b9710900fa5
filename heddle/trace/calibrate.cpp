#include "heddle/trace/calibrate.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/trace/predict.h"

namespace heddle {
namespace {

constexpr int kFitRounds = 3;  // repeated, because other messages may then be on the path

double quantile(std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  const auto at = values.begin() + long(part * double(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

class Calibration {
 public:
  Calibration(const Program& program, const Trace& trace, CostModel start)
      : program_(program), trace_(trace), model_(std::move(start)), costs_(costs_of(program)) {
    for (const Call& call : program.calls) chains_.push_back(chain_name(program.node_of(call)));
  }

  CostModel run() {
    for (const TraceLane& lane : trace_.lanes)
      if (lane.role == TraceRole::kConsumers) note_signals(lane);
    for (const TraceLane& lane : trace_.lanes)
      if (lane.role == TraceRole::kConsumers) note_tiles(lane);
    require(!runs_.empty(), "[calibrate] the trace has no events; must be of a run of {}", program_.name);
    const double between = quantile(between_, 0.5);
    model_.ns_per_tile = between + quantile(runs_, 0.02);
    if (!messages_.empty()) model_.ns_per_message = quantile(messages_, 0.5);
    set_stream();
    model_.factors.clear();
    for (const auto& [chain, sum] : sums_)
      if (const double work = model_.compute_ns(chain, sum.cost) - model_.ns_per_tile; work > 0)
        model_.factors[chain] = std::max(0.0, sum.run - sum.tiles * (model_.ns_per_tile - between)) / work;
    for (int round = 0; round < kFitRounds; ++round) fit_messages();
    return model_;
  }

 private:
  struct Sum {
    double tiles = 0, run = 0;
    Cost cost;
  };

  void note_signals(const TraceLane& lane) {
    for (const TraceEvent& event : lane.events) {
      const u32 counter = program_.workers[lane.worker][event.instruction].signal.counter;
      if (counter == kNoCounter) continue;
      u64& last = signalled_[{counter, event.epoch}];
      last = std::max(last, event.done);
    }
  }

  void note_tiles(const TraceLane& lane) {
    for (size_t i = 0; i < lane.events.size(); ++i) {
      if (i > 0 && lane.events[i].fetched >= lane.events[i - 1].done)
        between_.push_back(double(lane.events[i].fetched - lane.events[i - 1].done));
      note(lane.worker, lane.events[i]);
    }
  }

  void note(u32 worker, const TraceEvent& event) {
    const Instruction& instruction = program_.workers[worker][event.instruction];
    note_message(instruction, event);
    if (instruction.opcode >= kNopOpcode) return;
    const double run = double(event.done - event.ready), starved = double(event.starved);
    const Cost& cost = costs_[worker][event.instruction];
    if (starved > 0) starved_run_ += run, starved_bytes_ += cost.stream_bytes;
    runs_.push_back(run - starved);
    Sum& sum = sums_[chains_[instruction.call]];
    sum.tiles += 1, sum.run += run - starved;
    sum.cost.stream_bytes += cost.stream_bytes, sum.cost.bytes += cost.bytes, sum.cost.flops += cost.flops;
  }

  // Records a wait that had to wait: the time from the last signal until it was over.
  void note_message(const Instruction& instruction, const TraceEvent& event) {
    u64 last = 0;
    EdgeKind kind = EdgeKind::kCounted;
    for (int i = 0; i < kMaxWaits; ++i) {
      const u32 meant = event.epoch - (instruction.waits_previous(i) ? 1 : 0);
      const auto found = signalled_.find({instruction.waits[i].counter, meant});
      if (found != signalled_.end() && found->second > last)
        last = found->second, kind = instruction.wait_kind(i);
    }
    if (last <= event.fetched || last > event.ready || kind == EdgeKind::kInSm) return;
    messages_.push_back(double(event.ready - last));
  }

  // A step takes longer than the means of its tiles say, because each message waits for the slowest of many
  // workers. So the time beyond the prediction is divided among the messages of the longest path.
  void fit_messages() {
    const Prediction found = predict(program_, model_);
    if (const double rest = step_ns() - found.step; rest > 0 && found.messages > 0)
      model_.ns_per_message += rest / found.messages;
  }
  // Median time from the end of a step to the end of the next.
  double step_ns() const {
    std::map<u32, u64> ends;
    for (const TraceLane& lane : trace_.lanes)
      if (lane.role == TraceRole::kConsumers)
        for (const TraceEvent& event : lane.events)
          ends[event.epoch] = std::max(ends[event.epoch], event.done);
    std::vector<double> steps;
    for (auto it = ends.begin(); it != ends.end(); ++it)
      if (const auto next = std::next(it); next != ends.end())
        steps.push_back(double(next->second) - double(it->second));
    return quantile(steps, 0.5);
  }

  // Sets the rate of prefetching from tiles that had to wait for their weights; if there are none, the
  // fastest chain bounds it.
  void set_stream() {
    if (starved_bytes_ > 0) model_.ns_per_stream_byte = starved_run_ / starved_bytes_;
    if (program_.topology.ring_bytes > 0) return;
    double fastest = 0;
    for (const auto& [chain, sum] : sums_)
      if (sum.cost.stream_bytes > sum.cost.bytes && sum.run > 0)
        fastest = std::max(fastest, sum.cost.stream_bytes / sum.run);
    if (fastest > 0) model_.ns_per_stream_byte = 1 / fastest;
  }

  const Program& program_;
  const Trace& trace_;
  CostModel model_;
  std::vector<std::vector<Cost>> costs_;
  std::vector<std::string> chains_;                // by call
  std::map<std::pair<u32, u32>, u64> signalled_;   // by counter and epoch: the last signal
  std::vector<double> runs_, between_, messages_;  // nanoseconds
  std::map<std::string, Sum> sums_;                // by chain
  double starved_run_ = 0, starved_bytes_ = 0;
};

// Requires a number from 0 to a second.
double require_ns(const Json& value, const std::string& name, const std::string& where) {
  if (value.is_number())
    if (const double ns = value.as_number(); std::isfinite(ns) && ns >= 0 && ns <= 1e9) return ns;
  fail(ErrorCode::kIo, "[{}] {} = {}; must be a number, 0 to 1e9", where, name, value.dump());
}

}  // namespace

CostModel calibrate(const Program& program, const Trace& trace, CostModel start) {
  start.factors.clear();
  return Calibration(program, trace, std::move(start)).run();
}

std::string to_json(const CostModel& model) {
  Json json;
  CostModel::visit(model, [&](const char* name, double value) { json[name] = value; });
  json["factors"] = model.factors;
  return json.dump(2) + "\n";
}

CostModel parse_costs(const std::string& text, const std::string& where, CostModel start) {
  const Json json = parse_json(text, where);
  if (!json.is_object())
    fail(ErrorCode::kIo, "[{}] is no JSON object; must hold costs, as heddle profile --costs writes them",
         where);
  std::string known = "factors";
  CostModel::visit(start, [&](const char* name, double& value) {
    known += std::string(", ") + name;
    if (const Json* found = json.find(name)) value = require_ns(*found, name, where);
  });
  for (const auto& [name, value] : json.members()) {
    if (name == "factors") continue;
    bool is_field = false;
    CostModel::visit(start, [&](const char* field, double&) { is_field |= name == field; });
    if (!is_field) fail(ErrorCode::kIo, "[{}] {} is no cost; known are {}", where, name, known);
  }
  if (start.ns_per_stream_byte <= 0) fail(ErrorCode::kIo, "[{}] ns_per_stream_byte = 0; must be more", where);
  const Json* factors = json.find("factors");
  if (!factors) return start;
  if (!factors->is_object()) fail(ErrorCode::kIo, "[{}] factors must be an object", where);
  for (const auto& [chain, value] : factors->members())
    start.factors[chain] = require_ns(value, "factors of " + chain, where);
  return start;
}

}  // namespace heddle
