// A single op on the caller's memory: checked by the op's own rules, and run once on the caller's stream.
// This header is the same for every backend; a backend's OpCaller runs the calls (Backend::op_calls).
//
// A call's arguments are the op's own struct, with addresses in its tensors. The caller merges leading
// dimensions and provides all memory: the outputs, and whatever else a call needs (CallNeeds). A call whose
// shapes its thread has seen before allocates, uploads and waits for nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/ir/op.h"

namespace heddle {

// Where a caller's memory lies, if the caller knows.
struct MemoryPlace {
  enum class Kind : u8 { kUnknown, kHost, kGpu };
  Kind kind = Kind::kUnknown;
  i32 device = 0;  // kGpu: its ordinal

  bool operator==(const MemoryPlace&) const = default;
  std::string text() const;  // "the host", "GPU 1"
};

// A tensor of the caller.
struct TensorRef {
  void* data = nullptr;  // address of the first element
  DType dtype = DType::kF32;
  std::span<const i64> size;    // elements
  std::span<const i64> stride;  // elements; none: dense, row-major
  MemoryPlace place;
};

// Makes the tensor of an op's arguments. Throws Error, with op and argument, for tensors that no op accepts:
// more than kMaxRank dimensions, more than 2^30 elements in one dimension, a last dimension that is not
// contiguous, or memory that is known to be in another place than the call.
Tensor tensor_of(std::string_view op, std::string_view argument, const TensorRef& ref,
                 const MemoryPlace& where = {});

// The arguments of a call by name, for callers that know an op only by its name.
class CallArgs {
 public:
  // `where`: where the call runs, if known.
  explicit CallArgs(const OpSpec& op, const MemoryPlace& where = {});
  // A matrix may have contiguous columns in place of contiguous rows: it lies transposed then.
  CallArgs& set(std::string_view name, const TensorRef& tensor);
  CallArgs& set(std::string_view name, const AttributeValue& value);
  const std::byte* bytes() const { return args_.data(); }

 private:
  const Field& field(std::string_view name, FieldKind kind) const;

  const OpSpec& op_;
  MemoryPlace where_;
  std::vector<std::byte> args_;
};

// Where a call runs, and what it may use.
struct CallSite {
  // GPU: a CUstream, which also determines the context. Null: the default stream of `device`'s context or
  // (-1) of the current one.
  void* stream = nullptr;
  i32 device = -1;
  int threads = 1;  // CPU: threads that may work on it; 0: one for each core of the process
  // CallNeeds::workspace_bytes, 128-byte aligned. The call owns it until it is done.
  std::byte* workspace = nullptr;
  i64 workspace_bytes = 0;
  // One of the op's configurations for such a call (OpSpec::configs); null: its default. A call reads it
  // before it returns.
  const OpConfig* config = nullptr;
};

// Tells what a call needs besides its arguments, and how it would run. Another call of that shape needs the same if its
// tensors begin at multiples of 16 bytes where these do.
struct CallNeeds {
  i64 workspace_bytes = 0;
  i64 tiles = 0;     // 0: nothing runs, because all outputs are empty
  std::string body;  // "matmul_kernel.sm90", "rms_norm.sm80", or "rms_norm" for the generic one
  std::string
      why_no_kernel;  // the reason why the op's whole kernel does not run; empty: it does, or there is none
};

class OpCaller {
 public:
  virtual ~OpCaller() = default;
  virtual CallNeeds needs(const OpSpec& op, const std::byte* args, const CallSite& site) = 0;
  // The device on which whole kernels run; nothing where none can.
  virtual std::optional<KernelTarget> kernels(const CallSite&) { return std::nullopt; }
  // Runs the op on a struct of its arguments. On a GPU the call is done when the stream has passed it; on a
  // CPU when the function returns. Safe from any thread. `op` must live as long as the process.
  virtual void run(const OpSpec& op, const std::byte* args, const CallSite& site) = 0;
  // Returns when the stream has done all that it was given. Throws Error for a stream in capture, which runs nothing.
  virtual void wait(const CallSite&) {}
  virtual MemoryPlace::Kind memory() const = 0;
};

// Has the tensors of a call's arguments that have a shape exist, whatever their addresses.
void mark_given(const OpSpec& op, std::byte* args);

// True for ops that can only be parts of programs, because they read the step record.
bool needs_step_record(const OpSpec& op);

// A call that passed the op's rules: dtypes, ranks, sizes, strides, attributes. Throws Error.
struct CheckedCall {
  std::vector<std::byte> args;  // outputs have the sizes and dtypes that the rules give them
  bool is_empty = false;        // an input has no elements: no body runs
  std::string missing;  // an output that the caller has not given, with the shape it would have; empty: none
  // An output that has elements although an input has none, as a product over no columns; empty: none. The op's reference
  // makes it.
  std::string of_nothing;

  void require_outputs(const OpSpec& op) const;  // all are there, and a body can write them
};
CheckedCall check_call(const OpSpec& op, const std::byte* args);

// Knows where an op's arguments have addresses, and which other bytes decide how a call runs.
class CallLayout {
 public:
  explicit CallLayout(const OpSpec& op);

  // Hashes everything except addresses.
  u64 hash(const std::byte* args) const;
  bool same(const std::byte* a, const std::byte* b) const;
  // Checks that every tensor that exists has an address aligned for its elements. If false, say_why() throws.
  bool has_addresses(const std::byte* args) const;
  // Bit i: address i is no multiple of `bytes`; the last bit stands for all from the 16th on.
  u32 misaligned(const std::byte* args, u64 bytes) const;
  [[noreturn]] void say_why(const OpSpec& op, const std::byte* args) const;
  // Addresses, in the order of the arguments; null if a tensor does not exist.
  std::vector<const void*> addresses(const std::byte* args) const;
  const std::string& name_of(size_t address) const { return addresses_[address].name; }

 private:
  struct Words {
    u32 offset, bytes;
  };
  struct Address {
    std::string name;
    u32 tensor;  // offset of its tensor, in bytes
    u32 pointer;
    u32 alignment;  // 0: that of its elements
  };

  static const Tensor& tensor_at(const Address& address, const std::byte* args) {
    return *reinterpret_cast<const Tensor*>(args + address.tensor);
  }
  static u64 value_of(const Address& address, const std::byte* args);
  static u64 alignment_of(const Address& address, const Tensor& tensor) {
    return address.alignment ? address.alignment : u64(size_of(tensor.dtype));
  }

  std::vector<Words> words_;
  std::vector<Address> addresses_;
};

constexpr u32 kWeightAlignment = 64;  // bytes; for packed weights

}  // namespace heddle
