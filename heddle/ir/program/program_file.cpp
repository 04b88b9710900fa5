// Reads and writes the fields of a program (ir/program/archive.h). It writes arguments by their fields, so that
// padding and addresses stay out of the file.
#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/ir/program/archive.h"
#include "heddle/ir/program/program.h"
#include "heddle/ir/registry.h"

namespace heddle {
namespace {

constexpr FileKind kKind = {kProgramMagic, kProgramVersion, "program"};
constexpr size_t kMostOpsOfAChain = 64;

template <class Archive>
void tensor_fields(Archive& a, Tensor& t) {
  field(a, t.buffer), field(a, t.dtype), field(a, t.rank), field(a, t.offset);
  a.raw(t.size, kMaxRank), a.raw(t.stride, kMaxRank);
  t.data = nullptr;
}

// The panels of a coded weight have all columns. Below zero, the number of columns stands for the code and the group.
template <class Archive>
void panel_fields(Archive& a, Weight& weight) {
  i32 columns = weight.panel_cols;
  if (weight.is_coded()) columns = -1 - (i32(weight.coding.code) << 16 | weight.coding.group);
  field(a, columns);
  const i32 coded = -1 - columns;
  weight.coding = columns < 0 ? Coding{Code(coded >> 16 & 0xff), u16(coded & 0xffff)} : Coding{};
  weight.panel_cols = std::max(columns, 0);
}

template <class Archive>
void argument_fields(Archive& a, const Field& argument, std::byte* args) {
  if (argument.is_attribute()) return argument.with_attribute(args, [&](auto& value) { field(a, value); });
  tensor_fields(a, argument.elements(args));
  if (!argument.is_weight()) return;
  Weight& weight = argument.weight(args);
  field(a, weight.table_buffer), field(a, weight.panel_rows), field(a, weight.interleave);
  panel_fields(a, weight);
  field(a, weight.matrices);
  weight.table = nullptr;
}

template <class Archive>
void opcode_fields(Archive& a, Opcode& opcode) {
  list(a, opcode.ops, 8, [&](std::string& op) { field(a, op); });
  field(a, opcode.main), field(a, opcode.hash);
  std::string config = opcode.config.text();
  field(a, config);
  opcode.config = OpConfig::parse(config);
  require(!opcode.ops.empty() && opcode.ops.size() <= kMostOpsOfAChain && opcode.main < opcode.ops.size(),
          "[program] an opcode of {} ops with main {}; 1 to {} ops make a chain", opcode.ops.size(),
          opcode.main, kMostOpsOfAChain);
  const u64 here = chain_hash(opcode.ops, opcode.main);  // throws for an unknown op
  require(opcode.hash == here, "[program] {} was made with other arguments: hash {:016x}, here {:016x}",
          opcode.ops[opcode.main], opcode.hash, here);
}

constexpr i64 kMostFileBytes = i64(1) << 44;  // limit of a buffer; sums over a whole file do not overflow

template <class Archive>
void buffer_fields(Archive& a, ProgramBuffer& buffer) {
  Buffer& info = buffer.info;
  field(a, info.name), field(a, info.kind), field(a, info.bytes), field(a, info.resident);
  field(a, buffer.arena_offset);
  require(info.bytes >= 0 && info.bytes <= kMostFileBytes,
          "[program] buffer {} has {} bytes; must have 0 to {}", info.name, info.bytes, kMostFileBytes);
}

template <class Archive>
void call_fields(Archive& a, const Program& program, Call& call) {
  field(a, call.opcode), field(a, call.name), field(a, call.live);
  require(call.opcode < program.opcodes.size(), "[program] a call names opcode {}; there are {}", call.opcode,
          program.opcodes.size());
  const auto& ops = program.opcodes[call.opcode].ops;
  call.args.resize(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpSpec& op = get_op(ops[i]);
    if (call.args[i].empty()) call.args[i] = op.defaults;
    for (const Field& argument : op.fields) argument_fields(a, argument, call.args[i].data());
  }
}

template <class Archive>
void program_fields(Archive& a, Program& p) {
  field(a, p.name);
  visited(a, p.topology);
  visited(a, p.shape);
  field(a, p.arena_bytes);
  list(a, p.opcodes, 28, [&](Opcode& opcode) { opcode_fields(a, opcode); });
  list(a, p.buffers, 26, [&](ProgramBuffer& buffer) { buffer_fields(a, buffer); });
  list(a, p.calls, 11, [&](Call& call) { call_fields(a, p, call); });
  list(a, p.counters, 4, [&](CounterInfo& c) { field(a, c.total); });
  list(a, p.homes, 32, [&](Home& home) {
    field(a, home.buffer), field(a, home.begin), field(a, home.end), field(a, home.period);
    field(a, home.worker);
  });
  list(a, p.workers, 8, [&](std::vector<Instruction>& stream) {
    stream.resize(a.count(stream.size(), sizeof(Instruction)));
    a.raw(stream.data(), stream.size());
  });
}

}  // namespace

std::string frame_program(std::string_view fields) {
  return frame(kKind, fields);
}

std::string serialise_program(const Program& program) {
  Program copy = program;  // the walk also reads files, so it takes a non-const program
  return write_archive(kKind, copy, program_fields<ArchiveWriter>);
}

Program parse_program(std::string_view bytes, const std::string& where) {
  Program program;
  ArchiveReader reader(kKind, unframe(kKind, bytes, where), where);
  try {
    program_fields(reader, program);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    fail(ErrorCode::kIo, "[{}] {}; it was made by another heddle", where, error.what());
  }
  if (reader.left() != 0) reader.refuse("bytes left over");
  return program;
}

void save_program(const Program& program, const std::string& path) {
  write_file(path, serialise_program(program));
}

Program load_program(const std::string& path) {
  const MappedFile file(path);
  return file.read([&](std::string_view bytes) { return parse_program(bytes, path); });
}

}  // namespace heddle
