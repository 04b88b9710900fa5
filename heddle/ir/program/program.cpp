#include "heddle/ir/program/program.h"

#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include "heddle/base/error.h"
#include "heddle/ir/registry.h"

namespace heddle {

size_t Program::num_instructions() const {
  size_t n = 0;
  for (const auto& worker : workers)
    if (!worker.empty()) n += worker.size() - 1;  // a stream from a file may lack its end
  return n;
}

std::string Program::describe(const Instruction& instruction) const {
  if (instruction.opcode == kNopOpcode) return "nop";
  if (instruction.opcode >= opcodes.size() || instruction.call >= calls.size())
    return fmt::format("opcode {} call {}", instruction.opcode, instruction.call);
  return fmt::format("{} [{}] tile {}", calls[instruction.call].name, opcodes[instruction.opcode].text(),
                     instruction.tile);
}

std::string Opcode::text() const {
  const std::string chain = fmt::format("{}", fmt::join(ops, "+"));
  return config.values().empty() ? chain : fmt::format("{} ({})", chain, config.text());
}

Node Program::node_of(const Call& call) const {
  require(call.opcode < opcodes.size(), "[program] a call names opcode {}; there are {}", call.opcode,
          opcodes.size());
  const Opcode& opcode = opcodes[call.opcode];
  Node node;
  node.name = call.name;
  node.main = opcode.main;
  node.live = call.live;
  node.config = opcode.config;
  require(call.args.size() == opcode.ops.size() && opcode.main < opcode.ops.size(),
          "[program] call of {} has {} argument records for {} ops", node.name, call.args.size(),
          opcode.ops.size());
  for (size_t i = 0; i < opcode.ops.size(); ++i) {
    const OpSpec& op = get_op(opcode.ops[i]);
    require(call.args[i].size() == op.args_size(), "[program] {} holds {} bytes of arguments; {} takes {}",
            node.name, call.args[i].size(), op.name, op.args_size());
    node.parts.push_back({&op, call.args[i]});
  }
  return node;
}

namespace {

// Describes the layout of an op's arguments.
std::string layout_text(const OpSpec& op) {
  std::string text = op.name + ":";
  for (const Field& field : op.fields) {
    if (!field.is_attribute()) {
      const char* kind = field.is_weight() ? "p" : field.writes() ? "w" : "r";
      text += fmt::format("{} {}[{}];", kind, field.name, field.dims_text);
      continue;
    }
    const char* type = field.type == AttributeType::kFloat  ? "f"
                       : field.type == AttributeType::kI64  ? "l"
                       : field.type == AttributeType::kBool ? "b"
                                                            : "i";
    text += fmt::format("{} {};", type, field.name);
  }
  return text;
}

}  // namespace

// Hashes the layout of the arguments, so that a program made with another layout is refused.
u64 chain_hash(std::span<const OpSpec* const> ops, u32 main) {
  std::string text;
  for (const OpSpec* op : ops) text += layout_text(*op);
  text += fmt::format("main {}", main);
  return XXH3_64bits(text.data(), text.size());
}

u64 chain_hash(const std::vector<std::string>& ops, u32 main) {
  std::vector<const OpSpec*> specs;
  for (const std::string& name : ops) specs.push_back(&get_op(name));
  return chain_hash(specs, main);
}

}  // namespace heddle
