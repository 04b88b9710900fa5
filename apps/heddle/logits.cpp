// heddle logits: writes the logits of every position of a token sequence to a safetensors file.
#include <cstdio>
#include <cstring>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/input.h"
#include "apps/heddle/support/progress.h"
#include "heddle/base/error.h"
#include "heddle/model/hf/safetensors.h"

namespace heddle {
namespace {

struct LogitsFlags {
  EngineFlags engine;
  std::string tokens, out;
  i32 chunk = 64;
};

void run(const LogitsFlags& flags) {
  const std::vector<i32> tokens = parse_tokens(flags.tokens, "--tokens");
  require(flags.chunk >= 1, "[logits] --chunk is {}; must be positive", flags.chunk);
  EngineOptions options = flags.engine.options();
  options.all_logits = true;
  const i32 context = context_of(flags.engine, options);
  require(i64(tokens.size()) <= context, "[logits] --tokens has {}; the context holds {} ({})", tokens.size(),
          context, "--max-context sets it, up to what the model allows");
  auto engine = load_engine(flags.engine, options);
  const SequenceId sequence = engine->open({});
  ProgressLine progress;
  std::vector<float> logits;
  for (std::span<const i32> left = tokens; !left.empty();) {
    const size_t n = std::min({left.size(), size_t(engine->max_rows()), size_t(flags.chunk)});
    const StepRequest request{sequence, left.first(n), true};
    const StepResult result = engine->step(std::span(&request, 1));
    logits.insert(logits.end(), result.logits.begin(), result.logits.end());
    left = left.subspan(n);
    progress.show_tokens("reading", tokens.size() - left.size(), tokens.size());
  }
  progress.clear();
  TensorView view{.name = "logits",
                  .dtype = DType::kF32,
                  .shape = {int64_t(tokens.size()), engine->info().vocab},
                  .data = std::as_bytes(std::span(logits)),
                  .file = ""};
  write_safetensors(flags.out, {view});
}

}  // namespace

void add_logits(CLI::App& app) {
  auto flags = std::make_shared<LogitsFlags>();
  Command command(app, "logits", "Write the logits of every position of a token sequence");
  flags->engine.add_to(command);
  flags->engine.add_artefact_to(command);
  command.argument("--tokens", &flags->tokens, "token ids, separated by commas", {.required = true});
  command.argument("--out", &flags->out, "safetensors file; holds `logits`, f32 [tokens, vocab]",
                   {.required = true, .names = Names::kNewFile});
  command.argument("--chunk", &flags->chunk, "most rows of a step; 1 runs token by token");
  command.footer(
      "Example: heddle logits models/storyteller --tokens 1,2,3 --out logits.safetensors\n"
      "In Python: safetensors.numpy.load_file(\"logits.safetensors\")[\"logits\"]");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
