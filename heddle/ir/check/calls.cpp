#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/ir/check/form.h"

namespace heddle::proof {
namespace {

// Refuses arguments whose numbers would overflow arithmetic, before an op's own functions see them.
struct CheckArgs {
  const Program* program;
  Faults* faults;
  std::string where;  // such as "call 3 (layers.0.qkv)"
  bool ok = true;

  void check(const Field& field, const std::byte* args) {
    if (field.is_tensor()) check_tensor(field, field.tensor(args));
    if (field.is_weight()) check_weight(field.name, field.weight(args));
  }

 private:
  template <class... Args>
  void wrong(FaultKind kind, const std::string& argument, fmt::format_string<Args...> format,
             Args&&... args) {
    ok = false;
    faults->add(kind, "[{}] argument {}: {}", where, argument,
                fmt::format(format, std::forward<Args>(args)...));
  }

  bool check_shape(const std::string& argument, const Tensor& value) {
    if (int(value.dtype) >= kNumDTypes || value.rank > kMaxRank || (value.exists() && value.rank == 0)) {
      wrong(FaultKind::kMalformed, argument, "dtype {} and rank {}", int(value.dtype), value.rank);
      return false;
    }
    for (int d = 0; d < value.rank; ++d)
      if (value.size[d] < 1 || value.size[d] > (1 << 30) || value.stride[d] < 0 ||
          value.stride[d] > kMostBytes) {
        wrong(FaultKind::kMalformed, argument, "dimension {} of {} elements with stride {}", d, value.size[d],
              value.stride[d]);
        return false;
      }
    if (value.data == nullptr) return true;
    wrong(FaultKind::kMalformed, argument, "holds an address");
    return false;
  }

  // Checks that `bytes` bytes from the tensor's offset lie in its buffer.
  void check_extent(const std::string& argument, const Tensor& value, i64 bytes) {
    if (value.buffer >= program->buffers.size())
      return wrong(FaultKind::kMalformed, argument, "buffer {}; there are {}", value.buffer,
                   program->buffers.size());
    const Buffer& buffer = program->buffers[value.buffer].info;
    if (value.offset < 0 || value.offset % size_of(value.dtype) != 0)
      return wrong(FaultKind::kMalformed, argument, "offset {} in {}; must be a multiple of {}", value.offset,
                   buffer.name, size_of(value.dtype));
    if (value.offset > buffer.bytes || bytes > buffer.bytes - value.offset)
      wrong(FaultKind::kOutOfBounds, argument, "bytes [{}, {}) of {}, which has {}", value.offset,
            value.offset + bytes, buffer.name, buffer.bytes);
  }

  void check_tensor(const Field& field, const Tensor& value) {
    const std::string& argument = field.name;
    if (!check_shape(argument, value) || !value.exists()) return;
    if (value.size[value.rank - 1] > 1 && value.stride[value.rank - 1] != 1)
      return wrong(FaultKind::kMalformed, argument, "stride {} of the last dimension; must be 1",
                   value.stride[value.rank - 1]);
    i64 last = 0, step = 0;  // elements
    for (int d = 0; d < value.rank; ++d)
      if (__builtin_mul_overflow(i64(value.size[d] - 1), value.stride[d], &step) ||
          __builtin_add_overflow(last, step, &last) || last > kMostBytes)
        return wrong(FaultKind::kOutOfBounds, argument, "{} elements with stride {}", value.size[d],
                     value.stride[d]);
    check_extent(argument, value, bytes_of(value.dtype, last + 1));
    if (ok && field.writes() && is_immutable(program->buffers[value.buffer].info.kind))
      wrong(FaultKind::kMalformed, argument, "writes {}, a {} buffer, which is immutable",
            program->buffers[value.buffer].info.name, name(program->buffers[value.buffer].info.kind));
  }

  void check_weight(const std::string& argument, const Weight& value) {
    if (!check_shape(argument, value.data)) return;
    if (value.table != nullptr) wrong(FaultKind::kMalformed, argument, "holds an address");
    if (value.data.rank == 0) return;
    if (value.data.rank != 2 || value.panel_rows < 1 || value.panel_rows > (1 << 16) ||
        value.interleave < 1 || value.interleave > (1 << 30) || value.panel_cols < 0 ||
        value.panel_cols > (1 << 30) || value.matrices < 1)
      return wrong(FaultKind::kMalformed, argument, "{} of rank {}, panels of {} x {}, interleaved by {}",
                   value.matrices, value.data.rank, value.panel_rows, value.panel_cols, value.interleave);
    if (!value.holds_coding())
      return wrong(FaultKind::kMalformed, argument, "code {} in panels of {} x {}, interleaved by {}",
                   int(value.coding.code), value.panel_rows, value.panel_cols, value.interleave);
    if (value.table_buffer != kNoBuffer && value.table_buffer >= program->buffers.size())
      wrong(FaultKind::kMalformed, argument, "table in buffer {}; there are {}", value.table_buffer,
            program->buffers.size());
    const i64 columns = i64(value.slices()) * value.padded_cols();
    const i64 rows = (i64(value.rows()) + value.panel_rows - 1) / value.panel_rows * value.panel_rows;
    i64 elements = 0;
    if (columns > (1 << 30) || __builtin_mul_overflow(rows * value.matrices, columns, &elements) ||
        elements > kMostBytes)
      return wrong(FaultKind::kMalformed, argument, "{} x {} x {} elements in panels", value.matrices, rows,
                   columns);
    if (value.is_coded() && value.panel_bytes() > i64(value.panel_rows) << 30)
      return wrong(FaultKind::kMalformed, argument, "panels of {} bytes", value.panel_bytes());
    if (value.data.exists()) check_extent(argument, value.data, value.bytes());
  }
};

bool check_axes(std::span<const TileAxis> axes) {
  int coordinates = 0;
  for (const TileAxis& axis : axes) {
    if (axis.extent < 1 || axis.unit < 1) return false;
    coordinates += axis.kind == TileAxis::Kind::kRange ? 2 : 1;
  }
  return coordinates <= 4;
}

// Checks that the ops of a chain are in their places: [prologue] main [epilogues...].
bool check_chain(const std::vector<const OpSpec*>& ops, u32 main) {
  if (ops.size() == 1) return main == 0;
  if (main > 1 || !ops[main]->traits.main) return false;
  if (main == 1 && ops[main]->traits.input.empty()) return false;
  if (ops.size() > main + 1 && ops[main]->traits.output.empty()) return false;
  for (size_t i = 0; i < ops.size(); ++i)
    if (i < main ? !ops[i]->traits.prologue : i > main && !ops[i]->traits.epilogue) return false;
  return true;
}

std::vector<const OpSpec*> resolve(const Opcode& opcode, size_t index, FindOp find, Faults& faults) {
  std::vector<const OpSpec*> ops;
  for (const std::string& op : opcode.ops) {
    ops.push_back(find(op));
    if (ops.back()) continue;
    faults.add(FaultKind::kMalformed, "[opcode {}] there is no op {}", index, op);
    return {};
  }
  if (ops.empty() || opcode.main >= ops.size() || !check_chain(ops, opcode.main)) {
    faults.add(FaultKind::kMalformed, "[opcode {}] {} with main {} is no chain", index, opcode.ops,
               opcode.main);
    return {};
  }
  if (opcode.hash != chain_hash(ops, opcode.main)) {
    faults.add(FaultKind::kMalformed,
               "[opcode {}] {} was made with other arguments: hash {:016x}, here {:016x}", index, opcode.ops,
               opcode.hash, chain_hash(ops, opcode.main));
    return {};
  }
  return ops;
}

// Sets a main op's output to the shape that its shape rule expects, before epilogues fold its columns.
void unfold_output(const OpSpec& op, std::byte* args, i32 folds) {
  const Field* output = find_field(op.fields, op.traits.output);
  if (!output) return;
  Tensor& value = output->tensor(args);
  if (value.rank > 0) value.size[value.rank - 1] *= folds;
}

// Fills in what the ops say about the call. They may throw.
void ask_ops(CallForm& call) {
  i32 folds = 1;
  for (size_t i = call.node.main + 1; i < call.node.parts.size(); ++i)
    folds *= call.node.parts[i].op->traits.columns_per_output;
  for (const Part& part : call.node.parts) {
    std::vector<std::byte> copy = part.args;  // an op fills in outputs that a chain passes on
    if (&part == &call.node.main_part()) unfold_output(*part.op, copy.data(), folds);
    part.op->infer(copy.data());
    require_dtypes(part.op->name, part.op->fields, copy.data());
    call.axes.push_back(part.op->axes(part.args.data(), TilingTarget{}));
    require(check_axes(call.axes.back()), "[{}] axes cannot be tiled", part.op->name);
  }
  call.rule.emplace(call.node);
}

// A program does not say whether it was made for a GPU.
void require_config(const OpSpec& op, const std::byte* args, const OpConfig& config) {
  if (config.values().empty()) return;
  const std::vector<OpConfig> on_gpu = configs_of(op, args, {.gpu = true});
  if (std::ranges::find(on_gpu, config) != on_gpu.end()) return;
  require(find_config(op, args, {}, config) == config, "[{}] configuration {} has a wrong mark", op.name,
          config.text());
}

bool check_call(const Program& program, size_t index, const std::vector<const OpSpec*>& ops, CallForm& form,
                Faults& faults) {
  const Call& call = program.calls[index];
  CheckArgs check{&program, &faults, fmt::format("call {} ({})", index, call.name)};
  if (call.args.size() != ops.size() || call.live > LiveRows::kWanted) {
    faults.add(FaultKind::kMalformed, "[{}] {} argument records for {} ops, live rows {}", check.where,
               call.args.size(), ops.size(), int(call.live));
    return false;
  }
  form.node = {.name = call.name, .main = program.opcodes[call.opcode].main, .live = call.live};
  for (size_t i = 0; i < ops.size(); ++i) {
    if (call.args[i].size() != ops[i]->args_size()) {
      faults.add(FaultKind::kMalformed, "[{}] {} bytes of arguments; {} takes {}", check.where,
                 call.args[i].size(), ops[i]->name, ops[i]->args_size());
      return false;
    }
    form.node.parts.push_back({ops[i], call.args[i]});
    for (const Field& field : ops[i]->fields) check.check(field, call.args[i].data());
  }
  if (!check.ok) return false;
  try {
    ask_ops(form);
    const Part& main = form.node.main_part();
    require_config(*main.op, main.args.data(), program.opcodes[call.opcode].config);
  } catch (const Error& error) {
    faults.add(FaultKind::kMalformed, "[{}] {}", check.where, error.what());
    return false;
  }
  return true;
}

}  // namespace

void check_calls(const Program& program, FindOp find, Form& form, Faults& faults) {
  std::vector<std::vector<const OpSpec*>> ops;
  for (size_t i = 0; i < program.opcodes.size(); ++i)
    ops.push_back(resolve(program.opcodes[i], i, find, faults));
  if (program.opcodes.size() >= kNopOpcode)
    faults.add(FaultKind::kMalformed, "[program] {} opcodes; at most {}", program.opcodes.size(),
               kNopOpcode - 1);
  form.calls.resize(program.calls.size());
  for (size_t i = 0; i < program.calls.size() && !faults.full(); ++i) {
    const Call& call = program.calls[i];
    if (call.opcode >= ops.size())
      faults.add(FaultKind::kMalformed, "[call {}] opcode {} of {}", i, call.opcode, ops.size());
    else if (!ops[call.opcode].empty())
      check_call(program, i, ops[call.opcode], form.calls[i], faults);
  }
}

}  // namespace heddle::proof
