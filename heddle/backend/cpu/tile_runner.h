// What the CPU executors share: calls with their bodies and bound arguments.
#pragma once

#include <vector>

#include "heddle/backend/cpu/bodies.h"
#include "heddle/base/error.h"
#include "heddle/ir/executor.h"

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
      std::vector<Link> links;
      for (size_t i = 0; i < opcode.ops.size(); ++i) {
        const auto* body = find_body(bodies, opcode.ops[i]);
        if (!body) fail(ErrorCode::kUnsupported, "[{}] has no tile body in this build", opcode.ops[i]);
        if (i < opcode.main ? !body->prologue : i > opcode.main && !body->epilogue)
          fail(ErrorCode::kUnsupported, "[{}] cannot be {} of {}", opcode.ops[i],
               i < opcode.main ? "prologue" : "epilogue", opcode.ops[opcode.main]);
        links.push_back({body, bound_[c].args[i].data()});
      }
      links_.push_back(std::move(links));
      mains_.push_back(opcode.main);
    }
  }

  void run(Block& block, u32 call, const TileCoord& tile) const {
    Chain<Block> chain{links_[call], mains_[call]};
    chain.run(block, tile);
  }

 private:
  std::vector<BoundCall> bound_;
  std::vector<std::vector<typename Chain<Block>::Link>> links_;
  std::vector<size_t> mains_;
};

}  // namespace heddle
