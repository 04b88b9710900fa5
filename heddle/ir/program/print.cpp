#include "heddle/ir/program/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/ir/rules.h"

namespace heddle {

const char* name(EdgeKind kind) {
  return kind == EdgeKind::kInSm ? "in-SM" : "counted";
}

namespace {

std::string buffer_line(u32 index, const Buffer& buffer) {
  return fmt::format("  %{:<3} {:<10} {:>12} bytes  {}{}\n", index, name(buffer.kind), buffer.bytes,
                     buffer.name, buffer.resident ? ", resident" : "");
}

// Text such as "x f32 [1, 64] %3+128".
std::string tensor_text(const std::string& argument, const Tensor& tensor) {
  std::string text = fmt::format("{} {}", argument, shape_text(tensor));
  if (tensor.exists()) text += fmt::format(" %{}", tensor.buffer);
  if (tensor.offset > 0) text += fmt::format("+{}", tensor.offset);
  return text;
}

std::string weight_text(const std::string& argument, const Weight& weight) {
  const std::string times = weight.matrices > 1 ? fmt::format("{} x ", weight.matrices) : "";
  const std::string coded = weight.is_coded() ? fmt::format(", as {} with a scale for {} columns",
                                                            name(weight.coding.code), weight.group_cols())
                                              : "";
  return fmt::format("{}{} in {} panels of {} x {}{}", times, tensor_text(argument, weight.data),
                     weight.panels(), weight.panel_rows, weight.slice_cols(), coded);
}

// One op: what it reads and its attributes, an arrow, what it writes.
std::string part_text(const Part& part) {
  std::vector<std::string> reads, writes;
  const std::byte* args = part.args.data();
  for (const Field& field : part.op->fields) {
    if (field.is_attribute())
      reads.push_back(fmt::format("{} = {}", field.name, attribute_text(field, args)));
    else if (field.elements(args).rank > 0)
      (field.writes() ? writes : reads)
          .push_back(field.is_weight() ? weight_text(field.name, field.weight(args))
                                       : tensor_text(field.name, field.tensor(args)));
  }
  return fmt::format("{}({}) -> {}", part.op->name, fmt::join(reads, ", "), fmt::join(writes, ", "));
}

const char* live_text(LiveRows live) {
  return live == LiveRows::kRows ? "  live rows" : live == LiveRows::kWanted ? "  wanted rows" : "";
}

std::string waits_text(const Instruction& instruction) {
  std::string text;
  for (int i = 0; i < kMaxWaits; ++i)
    if (const Wait& wait = instruction.waits[i]; wait.counter != kNoCounter)
      text += fmt::format("  wait {}{} = {} {}", instruction.waits_previous(i) ? "previous " : "",
                          wait.counter, wait.target, name(instruction.wait_kind(i)));
  return text;
}

std::string tables_text(const Program& program) {
  std::string text = "opcodes\n";
  for (size_t i = 0; i < program.opcodes.size(); ++i)
    text += fmt::format("  {:<4} {}  hash {:016x}\n", i, program.opcodes[i].text(), program.opcodes[i].hash);
  text += fmt::format("buffers, arena of {} bytes\n", program.arena_bytes);
  for (u32 i = 0; i < program.buffers.size(); ++i) {
    text += buffer_line(i, program.buffers[i].info);
    if (program.buffers[i].arena_offset >= 0) {
      text.pop_back();
      text += fmt::format(", arena {}\n", program.buffers[i].arena_offset);
    }
  }
  text += "counters\n";
  for (size_t i = 0; i < program.counters.size(); ++i)
    text += fmt::format("  {:<4} total {}\n", i, program.counters[i].total);
  if (!program.homes.empty()) text += "homes\n";
  for (const Home& home : program.homes) {
    text += fmt::format("  %{:<3} [{}, {})", home.buffer, home.begin, home.end);
    if (home.period > 0) text += fmt::format(" of each {}", home.period);
    text += fmt::format(" at worker {}\n", home.worker);
  }
  return text;
}

}  // namespace

std::string print_header(const Program& program) {
  const Topology& t = program.topology;
  std::string text = fmt::format("program {}: {} instructions on {} workers", program.name,
                                 program.num_instructions(), t.workers);
  if (t.worker_memory > 0)
    text += fmt::format(", {} bytes each ({} of them ring)", t.worker_memory, t.ring_bytes);
  const StepShape& s = program.shape;
  return text + fmt::format("\nstep: {} rows, {} sequences, {} wanted, {} pages of {}, vocabulary {}\n",
                            s.rows, s.sequences, s.wanted, s.pages_per_sequence, s.page_size, s.vocab);
}

std::string print_graph(const Graph& graph) {
  std::string text =
      fmt::format("graph: {} calls on {} buffers\n", graph.nodes().size(), graph.buffers().size());
  for (u32 i = 0; i < graph.buffers().size(); ++i) text += buffer_line(i, graph.buffers()[i]);
  for (const Node& node : graph.nodes()) {
    text += fmt::format("{}{}\n", node.name, live_text(node.live));
    for (size_t i = 0; i < node.parts.size(); ++i)
      text += fmt::format("  {}{}\n", node.parts.size() > 1 && i == node.main ? "* " : "",
                          part_text(node.parts[i]));
  }
  return text;
}

std::string print_instruction(const Program& program, const Instruction& instruction) {
  std::string text = program.describe(instruction) + waits_text(instruction);
  if (instruction.signal.counter != kNoCounter)
    text += fmt::format("  signal {} + {} {}", instruction.signal.counter, instruction.signal.amount,
                        name(instruction.signal_kind()));
  if (instruction.stream_items == kItemsFromData)
    text += "  items from its inputs";
  else if (instruction.stream_items > 0)
    text += fmt::format("  items {}", instruction.stream_items);
  return text;
}

std::string print_program(const Program& program, const PrintOptions& options) {
  std::string text = print_header(program) + tables_text(program);
  for (size_t w = 0; w < program.workers.size(); ++w) {
    if (options.most_workers > 0 && w == options.most_workers) {
      text += fmt::format("and {} more workers\n", program.workers.size() - w);
      break;
    }
    const auto& stream = program.workers[w];
    text += fmt::format("worker {}\n", w);
    for (size_t i = 0; i < stream.size() && stream[i].opcode != kEndOpcode; ++i) {
      if (options.most_instructions > 0 && i == options.most_instructions) {
        text += fmt::format("  and {} more\n", stream.size() - 1 - i);
        break;
      }
      text += fmt::format("  {:<4} {}\n", i, print_instruction(program, stream[i]));
    }
  }
  return text;
}

}  // namespace heddle
