// Times building and proving programs of full size, without weights. Rows of the gate.
#include <memory>

#include "bench/rows.h"
#include "heddle/base/error.h"
#include "heddle/engine/planner.h"
#include "heddle/ir/check/check.h"
#include "heddle/schedule/schedule.h"
#include "tests/support/shapes.h"

namespace heddle {
namespace {

struct FullSize {
  const char* name;
  const char* config;
  i32 workers;
};
constexpr FullSize kCases[] = {
    {"Llama-3.2-1B on 132", kLlama1B, 132},
    {"Llama-3.1-8B on 132", kLlama8B, 132},
    {"Qwen3-8B on 132", kQwen8B, 132},
    {"Gemma-2-2B on 132", kGemma2B, 132},
    {"DeepSeek-V2-Lite on 132", kDeepseekLite, 132},
    {"DeepSeek-V3 on 132", kDeepseekV3, 132},
    {"Qwen3-30B-A3B on 132", kQwen30B, 132},
    {"Mixtral-8x7B on 132", kMixtral, 132},
};

// Measures a step of `rows` rows. Each row belongs to its own sequence, unless there are many.
void measure(bench::Rows& rows, const FullSize& of, i32 batch, i32 sequences,
             const CompileOptions& options = {}) {
  const std::string name = fmt::format("{}, {} rows, {}", of.name, batch, options.scheduler);
  const std::string build = "build " + name, prove = "prove " + name;
  const auto make = [&] {
    const Planner planner(std::make_shared<Shapes>(of.config), gpu_target(of.workers),
                          {.pages_per_sequence = 128, .num_pages = 128 * sequences}, options);
    return planner.program(batch, sequences);
  };
  rows.measure(build, [&] { make(); });
  const Program program = rows.wants(prove) ? make() : Program();
  rows.measure(prove, [&] { check_or_throw(program); });
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  bench::Rows rows(argc, argv);
  for (const FullSize& of : kCases) measure(rows, of, 1, 1);
  for (const Scheduler* scheduler : all_schedulers())
    if (scheduler->name != CompileOptions{}.scheduler)
      measure(rows, kCases[1], 1, 1, {.scheduler = scheduler->name});
  measure(rows, kCases[0], 2048, 256);
}
