// heddle quantize: puts a model's weights into codes. The Python package does the work; this is the command's description.
#include <memory>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/python_part.h"
#include "heddle/base/error.h"

namespace heddle {
namespace {

struct QuantizeFlags {
  std::string model, out, bits, format, calibrate, method;
  std::vector<std::string> skip;
  std::string group;
  bool json = false;
};

void run(const QuantizeFlags& flags) {
  std::vector<std::string> words = {flags.model, "--out", flags.out};
  const std::pair<const char*, const std::string*> texts[] = {{"--bits", &flags.bits},
                                                              {"--format", &flags.format},
                                                              {"--group", &flags.group},
                                                              {"--calibrate", &flags.calibrate},
                                                              {"--method", &flags.method}};
  for (const auto& [flag, value] : texts)
    if (!value->empty()) words.insert(words.end(), {flag, *value});
  for (const std::string& name : flags.skip) words.insert(words.end(), {"--skip", name});
  if (flags.json) words.emplace_back("--json");
  fail(ErrorCode::kUnsupported, "{}", become_python("quantize", "heddle.quant", words));
}

}  // namespace

void add_quantize(CLI::App& app) {
  auto flags = std::make_shared<QuantizeFlags>();
  Command command(app, "quantize",
                  "Write a model with weights of few bits, as compressed-tensors stores them");
  command.argument("model", &flags->model, "folder of the model, with floats in safetensors",
                   {.required = true, .names = Names::kFolder});
  command.argument("--out", &flags->out, "folder that is written; new or empty",
                   {.required = true, .names = Names::kNewFile});
  command.argument("--bits", &flags->bits,
                   "bits a weight: 4 or 8; another number, such as 4.5, chooses a format for each layer (4)",
                   {.shows_default = false});
  command.argument("--format", &flags->format, "the format of all layers, in place of --bits",
                   {.shows_default = false, .choices = "int4, int8, fp8, mxfp4, nvfp4"});
  command.argument("--group", &flags->group,
                   "columns of int4 and int8 that share a scale; 0: a whole row (int4 128, int8 0)",
                   {.shows_default = false});
  command.argument("--method", &flags->method,
                   "rtn: each weight to the nearest code; gptq: later weights make up for earlier ones",
                   {.shows_default = false, .choices = "rtn, gptq"});
  command.argument("--calibrate", &flags->calibrate,
                   "file with text, UTF-8, that --method gptq and --bits 4.5 measure with",
                   {.names = Names::kFile});
  command.argument(
      "--skip", &flags->skip,
      "layer that stays as it is: its name, the end of it, or a pattern with *; may be repeated");
  command.argument("--json", &flags->json, "print JSON");
  command.footer(
      "Needs the Python package, torch and transformers. docs/quantised.md has the formats.\n"
      "Examples:\n"
      "  heddle quantize ~/Llama-3.2-1B --out ~/Llama-3.2-1B-int4\n"
      "  heddle quantize ~/Llama-3.2-1B --out ~/Llama-3.2-1B-fp8 --format fp8\n"
      "  heddle quantize ~/Llama-3.2-1B --out ~/Llama-3.2-1B-mixed --bits 4.5 --calibrate text.txt");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
