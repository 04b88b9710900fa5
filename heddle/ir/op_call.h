// One op by itself, on memory of the caller's: checked by the op's own rules, run once, on the caller's stream. What this
// header declares is the same for every backend; a backend's OpCaller runs the calls (Backend::calls).
//
// A call's arguments are the op's own struct, of which the tensors have addresses. Leading dimensions that collapse are
// the caller's matter, as is memory: outputs are there already, and what a call needs beside them (CallNeeds) is given
// to it. A call of shapes that its thread has seen allocates, uploads and waits for nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/ir/op.h"

namespace heddle {

// Where a caller's memory is, as far as he knows.
struct MemoryPlace {
  enum class Kind : u8 { kUnknown, kHost, kGpu };
  Kind kind = Kind::kUnknown;
  i32 device = 0;  // kGpu: its ordinal

  bool operator==(const MemoryPlace&) const = default;
  std::string text() const;  // "the host", "GPU 1"
};

// A tensor of the caller's.
struct TensorRef {
  void* data = nullptr;  // of the first element
  DType dtype = DType::kF32;
  std::span<const i64> size;    // elements
  std::span<const i64> stride;  // elements; none: dense, row-major
  MemoryPlace place;
};

// The tensor as an op's arguments hold it. Throws Error, with op and argument, for what no op takes: more than kMaxRank
// dimensions or 2^30 elements in one, a last dimension that is not contiguous, memory that is known to be elsewhere than
// where the call runs.
Tensor tensor_of(std::string_view op, std::string_view argument, const TensorRef& ref,
                 const MemoryPlace& where = {});

// The arguments of a call by name, for callers that know ops by name only.
class CallArgs {
 public:
  // `where`: where the call runs, if that is known.
  explicit CallArgs(const OpSpec& op, const MemoryPlace& where = {});
  CallArgs& set(std::string_view name, const TensorRef& tensor);
  CallArgs& set(std::string_view name, const AttributeValue& value);
  const std::byte* bytes() const { return args_.data(); }

 private:
  const Field& field(std::string_view name, FieldKind kind) const;

  const OpSpec& op_;
  MemoryPlace where_;
  std::vector<std::byte> args_;
};

// Where and with what a call runs.
struct CallSite {
  // GPU: a CUstream, whose context it is; null: the default stream, of a context of `device` or (-1) the one that is
  // current.
  void* stream = nullptr;
  i32 device = -1;
  int threads = 1;  // CPU: as many as may work on it; 0: one for each core of the process
  std::byte* workspace =
      nullptr;  // CallNeeds::workspace_bytes, 128-byte aligned, the call's own until it is done
  i64 workspace_bytes = 0;
};

// What a call needs beside its arguments, and how it would run.
struct CallNeeds {
  i64 workspace_bytes = 0;
  i64 tiles = 0;     // 0: nothing runs, as all outputs are empty
  std::string body;  // "rms_norm.sm80", or "rms_norm" for the generic one
};

class OpCaller {
 public:
  virtual ~OpCaller() = default;
  virtual CallNeeds needs(const OpSpec& op, const std::byte* args, const CallSite& site) = 0;
  // Runs the op on a struct of its arguments. On a GPU it is done when the stream has passed it; on a CPU when the call
  // returns. Safe from any thread. `op` lives as long as the process.
  virtual void run(const OpSpec& op, const std::byte* args, const CallSite& site) = 0;
  virtual MemoryPlace::Kind memory() const = 0;
};

// Ops that can only be parts of programs, whose step record they read.
bool needs_step_record(const OpSpec& op);

// A call, held to the op's rules: dtypes, ranks, sizes, strides, attributes. Throws Error.
struct CheckedCall {
  std::vector<std::byte> args;  // outputs have the sizes and dtypes that the rules give them
  bool is_empty = false;        // all outputs are: there is nothing to run
  std::string missing;  // the output that the caller has not given, with what it would be; empty: none

  void require_outputs(const OpSpec& op) const;
};
CheckedCall check_call(const OpSpec& op, const std::byte* args);

// Where the arguments of an op have addresses, and what else in them decides how a call runs.
class CallLayout {
 public:
  explicit CallLayout(const OpSpec& op);

  // Of all but addresses.
  u64 hash(const std::byte* args) const;
  bool same(const std::byte* a, const std::byte* b) const;
  // Whether every tensor that is there has an address that its elements can have. False: say_why() throws.
  bool has_addresses(const std::byte* args) const;
  [[noreturn]] void say_why(const OpSpec& op, const std::byte* args) const;
  // Addresses, in the order of the arguments; null where a tensor is not there.
  std::vector<const void*> addresses(const std::byte* args) const;
  const std::string& name_of(size_t address) const { return addresses_[address].name; }

 private:
  struct Words {
    u32 offset, bytes;
  };
  struct Address {
    std::string name;
    u32 tensor;  // where its tensor stands, bytes
    u32 pointer;
    u32 alignment;  // 0: as its elements are
  };

  std::vector<Words> words_;
  std::vector<Address> addresses_;
};

constexpr u32 kWeightAlignment = 64;  // of packed weights, bytes

}  // namespace heddle
