// Holds what the CPU executors share: calls with their bodies and bound arguments.
#pragma once

#include <vector>

#include "heddle/backend/cpu/bodies.h"
#include "heddle/base/error.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/ir/registry.h"

namespace heddle {

// The bodies and bound arguments of each call of a program.
template <class Block>
class TileRunner {
 public:
  TileRunner(const Program& program, const Memory& memory, std::span<const BodyEntry<Block>> bodies)
      : bound_(bind_calls(program, memory)) {
    using Link = typename Chain<Block>::Link;
    for (size_t c = 0; c < program.calls.size(); ++c) {
      const Opcode& opcode = program.opcodes[program.calls[c].opcode];
      std::vector<Link>& links = links_.emplace_back();
      mains_.push_back(opcode.main);
      own_.push_back(own_op(opcode));
      if (own_.back()) continue;
      for (size_t i = 0; i < opcode.ops.size(); ++i) {
        const auto* body = find_body(bodies, opcode.ops[i]);
        if (!body) fail(ErrorCode::kUnsupported, "[{}] has no tile body in this build", opcode.ops[i]);
        if (i < opcode.main ? !body->prologue : i > opcode.main && !body->epilogue)
          fail(ErrorCode::kUnsupported, "[{}] cannot be {} of {}", opcode.ops[i],
               i < opcode.main ? "prologue" : "epilogue", opcode.ops[opcode.main]);
        links.push_back({body, bound_[c].args[i].data()});
      }
    }
  }

  // Returns the call's op if it came with a body of its own, which touches memory without a block; null: it did not.
  const OpSpec* own_op(u32 call) const { return own_[call]; }
  const std::byte* own_args(u32 call) const { return bound_[call].args[0].data(); }

  void run(Block& block, u32 call, const TileCoord& tile) const {
    if (own_[call]) return own_[call]->body(own_args(call), tile);
    Chain<Block> chain{links_[call], mains_[call]};
    chain.run(block, tile);
  }

 private:
  // Returns null if the op has no body of its own, or is a part of a chain.
  static const OpSpec* own_op(const Opcode& opcode) {
    const OpSpec& op = get_op(opcode.ops[opcode.main]);
    return opcode.ops.size() == 1 && op.body ? &op : nullptr;
  }

  std::vector<BoundCall> bound_;
  std::vector<const OpSpec*> own_;  // by call
  std::vector<std::vector<typename Chain<Block>::Link>> links_;
  std::vector<size_t> mains_;
};

}  // namespace heddle
