// Which tensor each call of a program writes, for those who look at values after a step with keep_buffers.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/ir/program/program.h"

namespace heddle {

// A tensor that a call writes and no later call overwrites: at the end its buffer still holds it.
struct Written {
  size_t call;
  Tensor tensor;
  i64 begin() const { return tensor.offset; }
  i64 end() const;  // in bytes, as begin()
  // Its bytes, of those of its buffer.
  std::vector<std::byte> of(std::vector<std::byte> buffer) const;
};

// All of them, in the order of the calls.
std::vector<Written> written_by(const Program& program);

// A value that is not finite.
struct NotFinite {
  std::string call, op;  // that made it
  i32 row = 0;
  double value = 0;
};

// The first such value of what calls compute of `rows` rows. `buffer` gives the content of a buffer. Minus infinity
// counts, except among the logits, where it means a token that is never chosen.
std::optional<NotFinite> first_not_finite(const Program& program, i32 rows,
                                          const std::function<std::vector<std::byte>(u32)>& buffer);

// True if a token can be chosen by these logits: none is NaN or plus infinity, and some are above minus infinity.
bool can_choose(std::span<const float> logits);

}  // namespace heddle
