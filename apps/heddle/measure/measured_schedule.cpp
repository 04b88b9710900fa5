#include "apps/heddle/measure/measured_schedule.h"

#include <cstring>

#include "apps/heddle/measure/decode_run.h"
#include "heddle/base/error.h"
#include "heddle/engine/target.h"
#include "heddle/trace/calibrate.h"

namespace heddle {

MeasuredSteps measure_steps(const EngineFlags& flags, const EngineOptions& options, const MeasureFlags& how) {
  const auto engine = load_engine(flags, options);
  DecodeRun run(*engine, how.position, how.rows);
  run.run(how.calls(), true);
  MeasuredSteps measured{.ns = {}, .tokens = run.result().tokens[0], .logits = run.result().logits};
  for (i32 round = 0; round < how.rounds; ++round)
    measured.ns.push_back(1e9 * run.run(how.calls()) / how.calls());
  return measured;
}

CostModel measure_costs(const EngineFlags& flags, const EngineOptions& options, const MeasureFlags& how) {
  EngineOptions traced = options;
  const Planner planner = load_planner(flags, traced);
  traced.run.trace_events =
      longest_stream(planner.program(planner.row_class(how.rows, 1), 1)) * u32(how.calls());
  const auto engine = load_engine(flags, traced);
  DecodeRun run(*engine, how.position, how.rows);
  const Program& program = engine->program(how.rows, 1);
  run.run(how.calls());  // warm-up
  double least = 0;
  Trace fastest;  // other work of the machine is not a cost of tiles
  for (i32 round = 0; round < how.rounds; ++round) {
    const double seconds = run.run(how.calls());
    if (round > 0 && seconds >= least) continue;
    least = seconds;
    fastest = engine->trace(program);
  }
  return calibrate(program, fastest, default_costs(program.topology));
}

void require_same(const std::string& policy, const MeasuredSteps& steps, const std::string& first_policy,
                  const MeasuredSteps& first) {
  for (size_t i = 0; i < first.tokens.size(); ++i)
    if (steps.tokens[i] != first.tokens[i])
      fail(ErrorCode::kInternal, "[schedule] token {} is {} with {} and {} with {}; must be the same", i,
           steps.tokens[i], policy, first.tokens[i], first_policy);
  for (size_t i = 0; i < first.logits.size(); ++i)
    if (std::memcmp(&steps.logits[i], &first.logits[i], sizeof(float)) != 0)
      fail(ErrorCode::kInternal, "[schedule] logit {} is {} with {} and {} with {}; must be the same bits", i,
           steps.logits[i], policy, first.logits[i], first_policy);
}

}  // namespace heddle
