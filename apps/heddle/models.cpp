// heddle models: lists the families that this build runs, with what each computes and refuses.
#include <fmt/core.h>

#include "apps/heddle/support/command.h"
#include "heddle/model/build/family.h"

namespace heddle {
namespace {

void run() {
  for (const Family* family : all_families()) {
    fmt::print("{:<12} {}\n", family->model_type, family->doc);
    fmt::print("{:<12} supports: {}\n", "", family->supports);
    fmt::print("{:<12} refuses:  {}\n", "", family->refuses);
  }
  fmt::print(
      "\nrope_type    default, linear, yarn, llama3; dynamic up to max_position_embeddings and longrope up "
      "to\n"
      "             original_max_position_embeddings: longer texts would change what is in the KV cache\n"
      "weights      float32, float16 or bfloat16 in safetensors; quantised ones are refused\n");
}

}  // namespace

void add_models(CLI::App& app) {
  Command command(app, "models", "List the families of models, what each supports and what it refuses");
  command.footer(
      "A family is known by the model_type of config.json. What is refused ends in an error that names the "
      "key, its\n"
      "value and what it may be.\n"
      "Example: heddle models");
  command.action(run);
}

}  // namespace heddle
