// The `.heddle` file: a header (magic, version, size and XXH3 of what follows), then the program, field by field.
// One description of its fields is walked by a Writer and by a Reader. Numbers are little-endian; arguments are
// written by their visits, so that padding and addresses stay out of the file.
#include <bit>
#include <cstring>
#include <type_traits>

#include <xxhash.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/ir/program.h"

namespace heddle {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

constexpr char kMagic[8] = {'H', 'E', 'D', 'D', 'L', 'E', '\r', '\n'};
constexpr size_t kHeaderBytes = 32;
constexpr size_t kMostOpsOfAChain = 64;

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Writer {
 public:
  std::string out;

  template <class T>
  void raw(T* values, size_t count) {
    out.append(reinterpret_cast<const char*>(values), count * sizeof(T));
  }
  size_t count(size_t n, size_t) {
    u64 stored = n;
    raw(&stored, 1);
    return n;
  }
};

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  template <class T>
  void raw(T* values, size_t count) {
    if (count * sizeof(T) > left()) refuse("ends inside a field");
    if (count == 0) return;  // there may be no memory at `values`
    std::memcpy(static_cast<void*>(values), bytes_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
  }
  // A stored count of things of which each takes at least `bytes`; what cannot be there is refused before memory
  // is asked for.
  size_t count(size_t, size_t bytes) {
    u64 n = 0;
    raw(&n, 1);
    if (n > left() / bytes) refuse("counts more things than it has bytes");
    return size_t(n);
  }
  size_t left() const { return bytes_.size() - at_; }
  [[noreturn]] void refuse(const char* why) const {
    fail(ErrorCode::kIo, "[{}] not a program that heddle wrote: byte {} of {}: {}", where_, at_,
         bytes_.size(), why);
  }

 private:
  std::string_view bytes_;
  const std::string& where_;
  size_t at_ = 0;
};

template <class Archive>
void field(Archive& a, Number auto& value) {
  a.raw(&value, 1);
}
template <class Archive>
void field(Archive& a, bool& value) {
  u8 stored = value;
  a.raw(&stored, 1);
  if constexpr (std::is_same_v<Archive, Reader>)
    if (stored > 1) a.refuse("a truth value that is neither 0 nor 1");
  value = stored != 0;
}
template <class Archive>
void field(Archive& a, std::string& text) {
  text.resize(a.count(text.size(), 1));
  a.raw(text.data(), text.size());
}
template <class Archive, class T>
void list(Archive& a, std::vector<T>& values, size_t least_bytes, auto each) {
  values.resize(a.count(values.size(), least_bytes));
  for (T& value : values) each(value);
}
template <class Archive, class T>
void visited(Archive& a, T& value) {
  T::visit(value, [&](const char*, auto& member) { field(a, member); });
}

template <class Archive>
struct ArgFields : ArgVisitor {
  Archive& a;
  explicit ArgFields(Archive& archive) : a(archive) {}

  void value_of(Tensor& t) {
    field(a, t.buffer), field(a, t.dtype), field(a, t.rank), field(a, t.offset);
    a.raw(t.size, kMaxRank), a.raw(t.stride, kMaxRank);
    t.data = nullptr;
  }
  void tensor(const char*, Tensor& value, const char*, Access) override { value_of(value); }
  void weight(const char*, Weight& value, const char*) override {
    value_of(value.data);
    field(a, value.table_buffer), field(a, value.panel_rows), field(a, value.interleave);
    field(a, value.panel_cols), field(a, value.matrices);
    value.table = nullptr;
  }
  void attribute(const char*, i32& value) override { field(a, value); }
  void attribute(const char*, float& value) override { field(a, value); }
};

template <class Archive>
void opcode_fields(Archive& a, Opcode& opcode) {
  list(a, opcode.ops, 8, [&](std::string& op) { field(a, op); });
  field(a, opcode.main), field(a, opcode.hash);
  require(!opcode.ops.empty() && opcode.ops.size() <= kMostOpsOfAChain && opcode.main < opcode.ops.size(),
          "[program] an opcode of {} ops with main {}; 1 to {} ops make a chain", opcode.ops.size(),
          opcode.main, kMostOpsOfAChain);
  const u64 here = chain_hash(opcode.ops, opcode.main);  // throws for an op that is not there
  require(opcode.hash == here, "[program] {} was made with other arguments: hash {:016x}, here {:016x}",
          opcode.ops[opcode.main], opcode.hash, here);
}

template <class Archive>
void buffer_fields(Archive& a, ProgramBuffer& buffer) {
  Buffer& info = buffer.info;
  field(a, info.name), field(a, info.kind), field(a, info.bytes), field(a, info.tagged);
  field(a, info.resident), field(a, info.home), field(a, buffer.arena_offset);
}

template <class Archive>
void call_fields(Archive& a, const Program& program, Call& call) {
  field(a, call.opcode), field(a, call.node), field(a, call.live);
  require(call.opcode < program.opcodes.size(), "[program] a call names opcode {}; there are {}", call.opcode,
          program.opcodes.size());
  const auto& ops = program.opcodes[call.opcode].ops;
  call.args.resize(ops.size());
  ArgFields<Archive> fields(a);
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpSpec& op = get_op(ops[i]);
    if (call.args[i].empty()) {
      call.args[i].resize(op.args_size);
      op.construct(call.args[i].data());
    }
    op.visit(call.args[i].data(), fields);
  }
}

template <class Archive>
void program_fields(Archive& a, Program& p) {
  field(a, p.name);
  visited(a, p.topology);
  visited(a, p.shape);
  field(a, p.arena_bytes);
  list(a, p.opcodes, 20, [&](Opcode& opcode) { opcode_fields(a, opcode); });
  list(a, p.buffers, 31, [&](ProgramBuffer& buffer) { buffer_fields(a, buffer); });
  list(a, p.calls, 7, [&](Call& call) { call_fields(a, p, call); });
  list(a, p.counters, 8, [&](CounterInfo& c) { field(a, c.total), field(a, c.buffer); });
  list(a, p.homes, 32, [&](Home& home) {
    field(a, home.buffer), field(a, home.begin), field(a, home.end), field(a, home.period);
    field(a, home.worker);
  });
  list(a, p.node_names, 8, [&](std::string& name) { field(a, name); });
  list(a, p.workers, 8, [&](std::vector<Instruction>& stream) {
    stream.resize(a.count(stream.size(), sizeof(Instruction)));
    a.raw(stream.data(), stream.size());
  });
}

}  // namespace

std::string frame_program(std::string_view fields) {
  Writer header;
  u32 version = kProgramVersion, reserved = 0;
  u64 size = fields.size(), hash = XXH3_64bits(fields.data(), fields.size());
  header.raw(kMagic, sizeof kMagic);
  field(header, version), field(header, reserved), field(header, size), field(header, hash);
  return header.out.append(fields);
}

std::string serialise_program(const Program& program) {
  Program copy = program;  // the walk takes what a Reader could fill in
  Writer writer;
  program_fields(writer, copy);
  return frame_program(writer.out);
}

Program parse_program(std::string_view bytes, const std::string& where) {
  Reader header(bytes.substr(0, kHeaderBytes), where);
  char magic[sizeof kMagic];
  u32 version = 0, reserved = 0;
  u64 size = 0, hash = 0;
  if (bytes.size() < kHeaderBytes) header.refuse("shorter than a header");
  header.raw(magic, sizeof magic);
  if (std::memcmp(magic, kMagic, sizeof magic) != 0) header.refuse("another magic");
  field(header, version), field(header, reserved), field(header, size), field(header, hash);
  if (version != kProgramVersion)
    fail(ErrorCode::kUnsupported, "[{}] program file of version {}; this heddle reads version {}", where,
         version, kProgramVersion);
  const std::string_view fields = bytes.substr(kHeaderBytes);
  if (reserved != 0 || size != fields.size())
    fail(ErrorCode::kIo, "[{}] holds {} bytes after its header, which says {}; the file was cut or changed",
         where, fields.size(), size);
  if (hash != XXH3_64bits(fields.data(), fields.size()))
    fail(ErrorCode::kIo, "[{}] was changed after it was written: its checksum does not fit", where);
  Program program;
  Reader reader(fields, where);
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
  const auto bytes = file.bytes();
  return parse_program({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace heddle
