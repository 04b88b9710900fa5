#include "heddle/ir/program.h"

#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include "heddle/base/error.h"

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
  return fmt::format("{} [{}] tile {}", calls[instruction.call].name,
                     fmt::join(opcodes[instruction.opcode].ops, "+"), instruction.tile);
}

Node Program::node_of(const Call& call) const {
  require(call.opcode < opcodes.size(), "[program] a call names opcode {}; there are {}", call.opcode,
          opcodes.size());
  const Opcode& opcode = opcodes[call.opcode];
  Node node;
  node.name = call.name;
  node.main = opcode.main;
  node.live = call.live;
  require(call.args.size() == opcode.ops.size() && opcode.main < opcode.ops.size(),
          "[program] call of {} has {} argument records for {} ops", node.name, call.args.size(),
          opcode.ops.size());
  for (size_t i = 0; i < opcode.ops.size(); ++i) {
    const OpSpec& op = get_op(opcode.ops[i]);
    require(call.args[i].size() == op.args_size, "[program] {} holds {} bytes of arguments; {} takes {}",
            node.name, call.args[i].size(), op.name, op.args_size);
    node.parts.push_back({&op, call.args[i]});
  }
  return node;
}

namespace {

// Hashes what an op's arguments look like, so that a program made with another layout is refused.
struct HashLayout : ArgVisitor {
  std::string text;
  void tensor(const char* name, Tensor&, const char* dims, Access access) override {
    text += fmt::format("{}{}[{}];", access == Access::kRead ? "r " : "w ", name, dims);
  }
  void weight(const char* name, Weight&, const char* dims) override {
    text += fmt::format("p {}[{}];", name, dims);
  }
  void attribute(const char* name, i32&) override { text += fmt::format("i {};", name); }
  void attribute(const char* name, float&) override { text += fmt::format("f {};", name); }
};

}  // namespace

u64 chain_hash(std::span<const OpSpec* const> ops, u32 main) {
  HashLayout layout;
  for (const OpSpec* op : ops) {
    std::vector<std::byte> args(op->args_size);
    op->construct(args.data());
    layout.text += std::string(op->name) + ":";
    op->visit(args.data(), layout);
  }
  layout.text += fmt::format("main {}", main);
  return XXH3_64bits(layout.text.data(), layout.text.size());
}

u64 chain_hash(const std::vector<std::string>& ops, u32 main) {
  std::vector<const OpSpec*> specs;
  for (const std::string& name : ops) specs.push_back(&get_op(name));
  return chain_hash(specs, main);
}

}  // namespace heddle
