// Text for people of what heddle builds: `heddle inspect --graph` and `--program`. Small ones are kept as
// files, so that a change of plan is seen in review. Not for parsing.
#pragma once

#include <string>

#include "heddle/ir/graph.h"
#include "heddle/ir/program.h"

namespace heddle {

const char* name(EdgeKind kind);

std::string print_graph(const Graph& graph);

// Name, workers and step: two lines.
std::string print_header(const Program& program);
// The header, and what the streams hold in numbers: waits by kind, memory, calls and tiles of each opcode.
std::string print_summary(const Program& program);

struct PrintOptions {
  size_t most_workers = 0;       // 0: all
  size_t most_instructions = 0;  // of a worker; 0: all
};
std::string print_program(const Program& program, const PrintOptions& options = {});
// One instruction on one line, without its place.
std::string print_instruction(const Program& program, const Instruction& instruction);

}  // namespace heddle
