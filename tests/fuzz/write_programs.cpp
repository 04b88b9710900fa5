// Writes the seeds of the program fuzzer: one program for each op, from its smallest case, and decode
// programs of two golden models. Run it again after a change of op arguments: ninja write_programs.
#include <cstdio>

#include <fmt/format.h>

#include "heddle/base/file.h"
#include "heddle/engine/builtins.h"
#include "heddle/engine/engine.h"
#include "heddle/ir/executor/artefact.h"
#include "heddle/ir/registry.h"
#include "tests/support/case_program.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

constexpr size_t kHeaderBytes = 32;

std::string smallest_case(const OpSpec& op) {
  std::string smallest;
  for (const Case& test : op.cases()) {
    std::string bytes = serialise_program(program_of_case(op, test));
    if (smallest.empty() || bytes.size() < smallest.size()) smallest = std::move(bytes);
  }
  return smallest;
}

// Two programs, and fake code.
Artefact small_artefact() {
  const OpSpec &add = get_op("add"), &copy = get_op("copy");
  return {.made_by = "",  // the fuzzer fills in its own
          .compiler = "NVRTC 13.0",
          .model = "llama",
          .checkpoint = "0123456789abcdef0123456789abcdef",
          .device = {"h200", "megakernel", "sm_90a", 132},
          .settings = {{"max_context", "64"}, {"scheduler", "level_batched"}, {"workers", "132"}},
          .programs = {prove(parse_program(smallest_case(add), "add"), 1, 1),
                       prove(parse_program(smallest_case(copy), "copy"), 8, 1)},
          .code = {{"one",
                    "\x7f"
                    "ELF"},
                   {"two", ""}},
          .where = ""};
}

void write_artefacts(const std::string& folder) {
  save_artefact(small_artefact(), folder + "/small.heddle");
  Artefact empty;
  save_artefact(empty, folder + "/empty.heddle");
  // Out of the map's order: the code with the first name comes last.
  std::string fields = serialise_artefact(small_artefact()).substr(kHeaderBytes);
  fields.replace(fields.rfind("one"), 3, "xxx");
  write_file(folder + "/code_out_of_order.heddle", frame_artefact(fields));
}

void write_all(const std::string& folder) {
  for (const OpSpec* op : all_ops())
    write_file(fmt::format("{}/{}.heddle", folder, op->name), smallest_case(*op));
  for (const std::string name : {"llama3-tiny", "gpt2-tiny"}) {
    EngineOptions options{.workers = 2, .max_sequences = 2, .splits = {.most = 2}};
    save_program(golden_planner(name, options).program(8, 2), fmt::format("{}/{}.heddle", folder, name));
  }
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "write_programs FOLDER_OF_PROGRAMS FOLDER_OF_ARTEFACTS\n"), 2;
  heddle::register_builtins();
  heddle::write_all(argv[1]);
  heddle::write_artefacts(argv[2]);
}
