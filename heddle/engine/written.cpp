#include "heddle/engine/written.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/element.h"

namespace heddle {
namespace {

// The op of a call that writes the tensor.
const OpSpec& op_that_writes(const Program& program, const Written& one) {
  const Node node = program.node_of(program.calls[one.call]);
  const OpSpec* found = node.parts.front().op;
  for (const Part& part : node.parts)
    for (const Field& field : part.op->fields)
      if (field.writes() && field.tensor(part.args.data()).buffer == one.tensor.buffer) found = part.op;
  return *found;
}

}  // namespace

i64 Written::end() const {
  i64 last = 0;
  for (int d = 0; d < tensor.rank; ++d) last += (tensor.size[d] - 1) * tensor.stride[d];
  return tensor.offset + (last + 1) * size_of(tensor.dtype);
}

std::vector<std::byte> Written::of(std::vector<std::byte> buffer) const {
  buffer.resize(size_t(end()));
  buffer.erase(buffer.begin(), buffer.begin() + begin());
  return buffer;
}

std::vector<Written> written_by(const Program& program) {
  std::vector<Written> all;
  for (size_t call = 0; call < program.calls.size(); ++call) {
    const Node node = program.node_of(program.calls[call]);
    for (const Part& part : node.parts)
      for (const Field& field : part.op->fields) {
        if (!field.writes() || !field.tensor(part.args.data()).exists()) continue;
        const Written one{call, field.tensor(part.args.data())};
        std::erase_if(all, [&](const Written& before) {
          return before.call != call && before.tensor.buffer == one.tensor.buffer &&
                 before.begin() < one.end() && one.begin() < before.end();
        });
        all.push_back(one);
      }
  }
  return all;
}

std::optional<NotFinite> first_not_finite(const Program& program, i32 rows,
                                          const std::function<std::vector<std::byte>(u32)>& buffer) {
  for (const Written& one : written_by(program)) {
    const Tensor& tensor = one.tensor;
    const BufferKind kind = program.buffers[tensor.buffer].info.kind;
    // Pages hold what earlier steps wrote. Only where rows lie in order does an element tell its row.
    if (!is_float(tensor.dtype) || kind == BufferKind::kPages || tensor.rank < 2) continue;
    const bool is_logits = kind == BufferKind::kOutput;
    if (!is_logits && tensor.size[0] != program.shape.rows) continue;
    const std::vector<std::byte> bytes = one.of(buffer(tensor.buffer));
    const i64 size = size_of(tensor.dtype), row = tensor.stride[0] * size;
    const i64 end = is_logits ? i64(bytes.size()) : std::min(i64(bytes.size()), rows * row);
    for (i64 at = 0; at < end; at += size) {
      const double value = load_number(tensor.dtype, &bytes[size_t(at)]);
      if (std::isfinite(value) || (is_logits && value < 0)) continue;
      return NotFinite{program.calls[one.call].name, op_that_writes(program, one).name,
                       is_logits ? rows - 1 : i32(at / row), value};
    }
  }
  return std::nullopt;
}

bool can_choose(std::span<const float> logits) {
  // x * 0 is NaN for what must not be there. Sums in lanes, because the compiler keeps the order of a single one.
  constexpr size_t kLanes = 16;
  float sums[kLanes] = {}, most[kLanes];
  std::ranges::fill(most, -INFINITY);
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float value = logits[i + lane];
      sums[lane] += (value == -INFINITY ? 0.0f : value) * 0.0f;
      most[lane] = value > most[lane] ? value : most[lane];
    }
  for (; i < logits.size(); ++i) {
    sums[0] += (logits[i] == -INFINITY ? 0.0f : logits[i]) * 0.0f;
    most[0] = std::max(most[0], logits[i]);
  }
  float sum = 0;
  for (float one : sums) sum += one;
  return sum == 0 && *std::ranges::max_element(most) > -INFINITY;
}

}  // namespace heddle
