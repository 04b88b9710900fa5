// heddle models: lists the families that this build runs, with what each computes and refuses.
#include <fmt/core.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/output.h"
#include "heddle/model/build/family.h"

namespace heddle {
namespace {

void print_families() {
  for (const Family* family : all_families()) {
    print("{:<16} {}\n", family->model_type, family->doc);
    print("{:<16} supports: {}\n", "", family->supports);
    print("{:<16} refuses:  {}\n", "", family->refuses);
  }
  print(
      "\nrope_type        default, linear, yarn, llama3; longrope, whose factors the context chooses; "
      "dynamic "
      "up\n"
      "                 to max_position_embeddings: longer texts would change cached keys\n"
      "weights          float32, float16, bfloat16 or (rounded) float64 in safetensors or pytorch_model.bin; "
      "fp8\n"
      "                 and gpt-oss's MXFP4 are expanded to bfloat16, other quantised ones refused\n");
}

}  // namespace

void add_models(CLI::App& app) {
  Command command(app, "models", "List the families of models, what each supports and what it refuses");
  command.footer(
      "The model_type of config.json chooses the family. An unsupported option gives an error that names\n"
      "the key, its value and the allowed values.\n"
      "Example: heddle models");
  command.action(print_families);
}

}  // namespace heddle
