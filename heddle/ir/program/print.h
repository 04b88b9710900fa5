// Prints graphs and programs for people: `heddle inspect --graph` and `--program`. Tests keep the text of
// small ones as files, so that a review shows a change of plan. The text is not meant for parsing.
#pragma once

#include <string>

#include "heddle/ir/graph.h"
#include "heddle/ir/program/program.h"

namespace heddle {

const char* name(EdgeKind kind);

std::string print_graph(const Graph& graph);

// Two lines: name, workers and step.
std::string print_header(const Program& program);
// The header and the streams' figures: waits by kind, memory, calls and tiles of each opcode.
std::string print_summary(const Program& program);

struct PrintOptions {
  size_t most_workers = 0;       // 0: all
  size_t most_instructions = 0;  // instructions of each worker; 0: all
};
std::string print_program(const Program& program, const PrintOptions& options = {});
// Prints an instruction on one line, without its place.
std::string print_instruction(const Program& program, const Instruction& instruction);

}  // namespace heddle
