#include "heddle/ir/check/form.h"

#include <limits>

#include "heddle/base/error.h"

namespace heddle::proof {
namespace {

// Examines the instructions one by one and collects their regions.
class Streams {
 public:
  Streams(Form& form, Faults& faults) : program_(*form.program), form_(form), faults_(faults) {}

  void walk() {
    for (u32 worker = 0; worker < program_.workers.size(); ++worker) {
      form_.first.push_back(form_.size());
      if (!check_ends(worker)) continue;
      const auto& stream = program_.workers[worker];
      for (u32 i = 0; i + 1 < stream.size() && !faults_.full(); ++i) {
        form_.region_begin.push_back(u32(form_.regions.size()));
        form_.worker_of.push_back(worker);
        check_instruction(worker, i);
      }
    }
    form_.first.push_back(form_.size());
    form_.region_begin.push_back(u32(form_.regions.size()));
  }

 private:
  bool check_ends(u32 worker) {
    const auto& stream = program_.workers[worker];
    if (stream.empty() || stream.back().opcode != kEndOpcode) {
      faults_.add(FaultKind::kMalformed, "[worker {}] a stream of {} instructions without an end", worker,
                  stream.size());
      return false;
    }
    return true;
  }

  template <class... Args>
  void wrong(FaultKind kind, fmt::format_string<Args...> format, Args&&... args) {
    faults_.add(kind, "{}: {}", place_of(program_, worker_, index_),
                fmt::format(format, std::forward<Args>(args)...));
  }

  void check_instruction(u32 worker, u32 index) {
    worker_ = worker, index_ = index;
    const Instruction& instruction = program_.workers[worker][index];
    if (instruction.flags >> Instruction::kFlagBits || instruction.reserved != 0)
      wrong(FaultKind::kMalformed, "flags {:#x}, reserved {:#x}", instruction.flags, instruction.reserved);
    for (const Wait& wait : instruction.waits) check_counter("waits for", wait.counter);
    check_counter("signals", instruction.signal.counter);
    if (instruction.signal.counter != kNoCounter && instruction.signal.amount == 0)
      wrong(FaultKind::kMalformed, "signals counter {} by nothing", instruction.signal.counter);
    if (instruction.opcode == kNopOpcode) {
      if (instruction.stream_items != 0)
        wrong(FaultKind::kMalformed, "a nop with {} stream items", instruction.stream_items);
      return;
    }
    check_work(instruction);
  }

  void check_counter(const char* what, u32 counter) {
    if (counter != kNoCounter && counter >= program_.counters.size())
      wrong(FaultKind::kMalformed, "{} counter {}; there are {}", what, counter, program_.counters.size());
  }

  void check_work(const Instruction& instruction) {
    if (instruction.call >= form_.calls.size() ||
        program_.calls[instruction.call].opcode != instruction.opcode)
      return wrong(FaultKind::kMalformed, "opcode {} of {}, call {} of {}", instruction.opcode,
                   program_.opcodes.size(), instruction.call, program_.calls.size());
    CallForm& call = form_.calls[instruction.call];
    if (!call.rule) return;  // the call itself has a fault, which is reported already
    call.instructions.push_back(u32(form_.worker_of.size() - 1));
    TileCoord tile;
    for (int d = 0; d < 4; ++d) tile[d] = instruction.tile[d];
    if (!check_tile(call, tile)) return;
    const size_t begin = form_.regions.size();
    try {
      call.rule->append(tile, form_.regions);
    } catch (const Error& error) {
      return wrong(FaultKind::kOutOfBounds, "{}", error.what());
    }
    for (const Region& region : std::span(form_.regions).subspan(begin))
      if (!check_region(region)) return;
    const u32 items = stream_items(call.node, tile);
    if (instruction.stream_items != items)
      wrong(FaultKind::kMalformed, "{} stream items; its tile draws {}", instruction.stream_items, items);
  }

  bool check_tile(const CallForm& call, const TileCoord& main_tile) {
    for (size_t part = 0; part < call.axes.size(); ++part) {
      const TileCoord tile = part_tile(call.node, part, main_tile);
      const bool is_main = part == call.node.main;
      int at = 0;
      for (const TileAxis& axis : call.axes[part]) {
        const bool range = axis.kind == TileAxis::Kind::kRange;
        const i32 begin = tile[at], end = range ? tile[at + 1] : begin + (begin < axis.extent);
        if (begin < 0 || begin >= end || end > axis.extent) {
          wrong(FaultKind::kOutOfBounds, "tile {} of axis {}, which has {} elements",
                tile_text({&axis, 1}, {{begin, end}}), axis.dim, axis.extent);
          return false;
        }
        if (is_main && (begin % axis.unit != 0 || (end % axis.unit != 0 && end != axis.extent && range))) {
          wrong(FaultKind::kMalformed, "tile {}; must be cut at multiples of {}",
                tile_text({&axis, 1}, {{begin, end}}), axis.unit);
          return false;
        }
        at += range ? 2 : 1;
      }
    }
    return true;
  }

  bool check_region(const Region& region) {
    if (region.buffer >= program_.buffers.size()) {
      wrong(FaultKind::kMalformed, "touches buffer {}; there are {}", region.buffer, program_.buffers.size());
      return false;
    }
    const Buffer& buffer = program_.buffers[region.buffer].info;
    bool inside = region.offset >= 0 && region.run >= 0 && region.run <= buffer.bytes;
    i64 last = region.offset;
    for (size_t d = 0; d < 2 && inside; ++d) {
      i64 span = 0;
      inside = region.count[d] >= 1 && region.stride[d] >= 0 &&
               !__builtin_mul_overflow(region.count[d] - 1, region.stride[d], &span) &&
               !__builtin_add_overflow(last, span, &last) && last <= buffer.bytes;
    }
    if (!inside || last > buffer.bytes - region.run) {
      wrong(FaultKind::kOutOfBounds, "{} from byte {} of {}, {} x {} runs of {} bytes; it has {}",
            region.access == Access::kRead ? "reads" : "writes", region.offset, buffer.name, region.count[0],
            region.count[1], region.run, buffer.bytes);
      return false;
    }
    const i64 most = i64(kMostPieces);
    if (region.count[0] > most || region.count[1] > most || region.count[0] * region.count[1] > most) {
      wrong(FaultKind::kDoesNotFit, "touches {} in {} x {} pieces; at most {} in all", buffer.name,
            region.count[0], region.count[1], most);
      return false;
    }
    if (region.access == Access::kWrite && is_immutable(buffer.kind)) {
      wrong(FaultKind::kMalformed, "writes {}, a {} buffer, which is immutable", buffer.name,
            name(buffer.kind));
      return false;
    }
    return true;
  }

  const Program& program_;
  Form& form_;
  Faults& faults_;
  u32 worker_ = 0, index_ = 0;
};

bool too_large(const Program& program) {
  size_t instructions = 0;
  for (const auto& stream : program.workers) instructions += stream.size();
  return instructions > size_t(std::numeric_limits<i32>::max()) / 2;
}

}  // namespace

Form make_form(const Program& program, FindOp find, Faults& faults) {
  Form form;
  form.program = &program;
  check_tables(program, faults);
  if (too_large(program)) faults.add(FaultKind::kDoesNotFit, "[program] has more than 2^30 instructions");
  if (!faults.empty()) return form;
  check_calls(program, find, form, faults);
  Streams(form, faults).walk();
  return form;
}

std::string tile_text(std::span<const TileAxis> axes, const TileCoord& tile) {
  std::string text;
  int at = 0;
  for (const TileAxis& axis : axes) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{}{}{}", axis.dim, axis.dim.empty() ? "" : " ", tile[at]);
    if (axis.kind == TileAxis::Kind::kRange) text += fmt::format("..{}", tile[at + 1]);
    at += axis.kind == TileAxis::Kind::kRange ? 2 : 1;
  }
  return text;
}

}  // namespace heddle::proof
