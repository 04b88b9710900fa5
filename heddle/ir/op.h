// The op contract: a tile operation is declared once, in the folder of its family, and everything else
// derives from that declaration. An op is
//   x.h          its arguments: a plain struct with one `visit` (read by host and device)
//   x.cpp        `const OpSpec& x::op()`: shape rule, tiling, cost, fp64 reference, traits
//   x.cuh        its tile body: `struct Body` with stream and run, and what it is as a part of a chain
//   x_cases.cpp  `std::vector<Case> x::cases()`: shapes x dtypes x bounds
// The folder is the registration: nothing else names the op. An op may also be made at run time: its fields are listed
// (ir/field.h), its functions carry what they need, and it is added to the registry (ir/registry.h). Goals: values and
// functions, no class hierarchy, no static initialisers, no global enum. Non-goals: layouts that are not
// strided.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "heddle/ir/access_hook.h"
#include "heddle/ir/args.h"
#include "heddle/ir/config.h"
#include "heddle/ir/field.h"
#include "heddle/ir/field_count.h"
#include "heddle/ir/gradient.h"
#include "heddle/ir/kernel.h"

namespace heddle {

// The bytes of a buffer that a tile touches: `count[0]` x `count[1]` runs of `run` bytes. Indexed: data
// chooses which of them (a page table, a gather, a row's length). Edges order all of them; indexed writers of
// one call promise a partition, which `reference` verifies.
struct Region {
  u32 buffer = kNoBuffer;
  Access access = Access::kRead;
  bool indexed = false;
  i64 offset = 0;
  i64 run = 0;
  std::array<i64, 2> count = {1, 1};
  std::array<i64, 2> stride = {0, 0};

  i64 end() const { return offset + (count[0] - 1) * stride[0] + (count[1] - 1) * stride[1] + run; }
  i64 bytes() const { return run * count[0] * count[1]; }
  bool operator==(const Region&) const = default;
};

// One axis of an op's tiling. A range takes two coordinates {begin, end}, an index takes one.
struct TileAxis {
  enum class Kind : u8 { kRange, kIndex };
  std::string dim;  // name of the dimension in the arguments' declarations; "" for an index of its own
  Kind kind = Kind::kRange;
  i32 extent = 0;         // elements, or number of indices
  i32 unit = 1;           // a range is cut at multiples of this
  i32 preferred = 0;      // elements per tile where no home decides; 0: all
  bool anywhere = false;  // homes do not decide: the weight has none in this program
};

// The facts that tiling and the list of configurations may depend on. They never include the number of
// workers, because that must not change a sum.
struct TilingTarget {
  bool gpu = false;
  const OpConfig* config = nullptr;  // chosen for the call (OpSpec::configs); null: the op's default
  const KernelTarget* kernels =
      nullptr;  // a call by itself, which may be a whole kernel there; null: a part of a program
};

struct OpTraits {
  bool prologue = false;  // makes one row of a main op's input
  bool epilogue = false;  // transforms a main op's fragment
  bool main = false;  // takes epilogues, and a prologue where it has `input`; axes are rows, then columns =
                      // rows of its weight
  bool scatters = false;         // main: rows of its fragments are not rows of its output
  bool streams_by_data = false;  // main: its inputs say which panels of its weight it loads
  std::string input;             // prologue, epilogue, main: the argument that the chain passes in
  std::string output;            // and the one that it passes on
  i32 columns_per_output = 1;    // epilogue: input columns that make one output column
  bool in_place = false;         // output may share memory with an input of the same dimensions
  std::function<bool(const std::byte* args)> can_fuse;  // epilogue: null means always
  bool wants_f32 = false;  // it adds up a row: mixed precision gives it, and takes from it, f32
  // Where an input is not finite, NaN may reach more results than in fp64, or stand for infinity: sums give what a
  // result does not see the weight 0, or add up a value in parts.
  bool spreads_nan = false;
};

// Gives an op's reference the values of a run, in fp64. The harness implements it.
class Values {
 public:
  virtual ~Values() = default;
  virtual std::vector<double> read(const Tensor& tensor) const = 0;  // row-major
  virtual std::vector<double> read(const Weight& weight) const = 0;  // row-major, source row order as packed
  virtual void write(const Tensor& tensor, std::span<const double> values) = 0;
  virtual std::byte* bytes(u32 buffer) = 0;  // step record, tables
};

// One case of the harness: arguments whose tensors have shape, dtype and (filled in by the harness) buffers.
struct Case {
  std::string name;
  std::vector<std::byte> args;
  double bound = 0;  // largest |value - reference| / (1 + |reference|)
  // Fills inputs for which random values in [-1, 1] are wrong (indices, step records); may be empty.
  std::function<void(std::byte* args, Values&)> prepare;
};

// The tile body of an op that was made at run time, as texts.
struct OpText {
  std::string args;    // the name of the arguments' struct, in namespace heddle
  std::string scope;   // the namespace of `Body`
  std::string header;  // declares the struct, as x.h does
  std::string body;    // defines the body, as x.cuh does. A line "#line 7 "name"" changes messages alone
};

struct OpSpec {
  std::string name;
  std::string doc;
  std::vector<Field> fields;        // in the order of the arguments' struct
  std::vector<std::byte> defaults;  // the arguments before anything is set
  size_t args_fields = 0;           // number of the struct's fields, as the compiler counts them
  // Checks the inputs and sets dtype (where unset) and sizes of the outputs. Throws Error.
  std::function<void(std::byte* args)> infer;
  std::function<std::vector<TileAxis>(const std::byte* args, const TilingTarget& target)> axes;
  // Configurations of such a call, the likely best first; the first is the default, which gives the same bits
  // as none. Their values are sizes that `axes` prefers, and constants of the op's body on a device
  // (`DefaultConfig` in x.cuh has the default's). Each must fit the call. One that adds terms in another
  // order than the default is marked (OpConfig::reordering); it must be there for any number of rows, because
  // the cut of a prompt must change no bit. Null, or an empty list: there is nothing to choose.
  // With TilingTarget::kernels, those of the op's kernel come first (kKernelValue).
  std::function<std::vector<OpConfig>(const std::byte* args, const TilingTarget& target)> configs;
  // Runs a call by itself as a whole kernel (ir/kernel.h). Null: tile by tile alone.
  KernelRule kernel;
  // Plans, in the same way, a main op with its epilogues as a call of many rows in a program. `config` has "fold", the
  // columns that make one of the output. The code is in x_kernel.<file>.cuh too, and has the sums of tiles in their order.
  KernelRule chain_kernel;
  // Regions of a tile that do not follow from the dimensions' names. Null: all of them follow.
  std::function<void(const std::byte* args, const TileCoord& tile, std::vector<Region>& out)> regions;
  // Arithmetic of a tile. Its bytes follow from its regions.
  std::function<double(const std::byte* args, const TileCoord& tile)> flops;
  // Bytes that a tile prefetches, where its regions only say what it may load. Null: its weights' regions.
  std::function<double(const std::byte* args, const TileCoord& tile)> stream_bytes;
  // On-chip bytes that a tile needs besides its stream. Null: none.
  std::function<i64(const std::byte* args, const TileCoord& tile)> scratch;
  std::function<void(const std::byte* args, Values& values)> reference;
  // Runs a tile on the CPU, on bound arguments: for an op without a tile body in heddle/ops. Several threads
  // may call it at once.
  std::function<void(const std::byte* args, const TileCoord& tile)> body;
  // Does the same, and calls the hook before each access. Null: nobody can see what `body` touches.
  std::function<void(const std::byte* args, const TileCoord& tile, const AccessHook& hook)> watched_body;
  // For backends that compile bodies late. Null: x.h and x.cuh are in heddle/ops.
  std::function<OpText()> text;
  std::function<std::vector<Case>()> cases;
  OpTraits traits;
  std::vector<GradientCall> gradient;  // empty: it has none

  // Defined once: with a copy of each, the file of an op took a tenth to a fifth longer to compile.
  OpSpec();
  OpSpec(const OpSpec&);
  OpSpec(OpSpec&&) noexcept;
  OpSpec& operator=(const OpSpec&);
  OpSpec& operator=(OpSpec&&) noexcept;
  ~OpSpec();

  size_t args_size() const { return defaults.size(); }
};

// The configurations of a call of the op; empty where it has none to choose from.
std::vector<OpConfig> configs_of(const OpSpec& op, const std::byte* args, const TilingTarget& target);
// The one of them that has the values of `wanted`, with the op's mark. Throws Error that lists all of them
// when there is none.
OpConfig find_config(const OpSpec& op, const std::byte* args, const TilingTarget& target,
                     const OpConfig& wanted);

// Computes the regions of an op's tiles from the names of its dimensions. It is made once per call, then
// cheap.
class RegionRule {
 public:
  RegionRule(const OpSpec& op, const std::byte* args);
  // `output_tile`: the tile of the operand named traits.output, in its own columns. It differs from `tile`
  // for a main op whose epilogues fold columns.
  void append(const TileCoord& tile, const TileCoord& output_tile, std::vector<Region>& out) const;

 private:
  struct Operand {
    Tensor tensor;
    Access access;
    // For each dimension: the tile coordinates that bound it ({0, 1} or {2, 3}), scaled; -1: the whole
    // dimension.
    std::array<int, kMaxRank> coordinate;
    std::array<i32, kMaxRank> scale;
    bool output = false;
    bool indexed = false;
  };
  const OpSpec* op_;
  const std::byte* args_;
  std::vector<Operand> operands_;
};
// The bytes of tensor[box]; box has {begin, end} for each dimension.
Region region_of(const Tensor& tensor, Access access, std::span<const std::array<i32, 2>> box);
Region whole(const Tensor& tensor, Access access, bool indexed = false);

// A struct of arguments: its bytes, its fields as the compiler counts them, and what makes the defaults at `args` and lists
// their fields.
struct ArgsType {
  size_t size, count;
  void (*list)(std::byte* args, std::vector<Field>& fields);
};
OpSpec op_with(const char* name, const char* doc, const ArgsType& type);

// Makes an OpSpec whose arguments are `Args`. The caller fills in the rest.
template <class Args>
OpSpec op_of(const char* name, const char* doc) {
  static_assert(std::is_trivially_copyable_v<Args>, "arguments are copied as bytes");
  const auto list = [](std::byte* bytes, std::vector<Field>& fields) {
    const Args* args = new (bytes) Args();
    Args::visit(*args, FieldList(args, fields));
  };
  return op_with(name, doc, {.size = sizeof(Args), .count = field_count<Args>(), .list = list});
}

}  // namespace heddle
