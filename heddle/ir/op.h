// The op contract: a tile operation is declared once, in the folder of its family, and everything else
// derives from that declaration. An op is
//   x.h          its arguments: a plain struct with one `visit` (read by host and device)
//   x.cpp        `const OpSpec& x_op()`: shape rule, tiling, cost, fp64 reference, traits
//   x.cuh        its tile body: `struct Body` with stream and run, and what it is as a part of a chain
//   x_cases.cpp  `std::vector<Case> x_cases()`: shapes x dtypes x bounds
// The folder is the registration: nothing else names the op. Goals: values and plain functions, no class
// hierarchy, no static initialisers, no global enum. Non-goals: layouts that are not strided.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/ir/field_count.h"
#include "heddle/ir/gradient.h"
#include "heddle/ir/tensor.h"

namespace heddle {

enum class Access : u8 { kRead, kWrite };

// The bytes of a buffer that a tile touches: `count[0]` x `count[1]` runs of `run` bytes.
// Indexed: which of them depends on data (a page table, a gather, a row's length); ordering takes them all, and
// indexed writers of one call promise a partition, which `reference` verifies.
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
  const char* dim = "";  // name of the dimension in the arguments' declarations, "" for an index of its own
  Kind kind = Kind::kRange;
  i32 extent = 0;         // elements, or number of indices
  i32 unit = 1;           // a range is cut at multiples of this
  i32 preferred = 0;      // elements per tile where nothing else (a home) decides; 0: all
  bool anywhere = false;  // homes do not decide: the weight has none in this program
};

// What tiling may depend on. Never the number of workers: it must not change a sum.
struct TilingTarget {
  bool gpu = false;
};

// What a part of a chain needs of the fragment it transforms.
enum class EpilogueNeeds : u8 { kNothing, kPair, kHead };

struct OpTraits {
  bool prologue = false;  // makes one row of a main op's input
  bool epilogue = false;  // transforms a main op's fragment
  bool main = false;  // takes epilogues, and a prologue where it has `input`; axes are rows, then columns =
                      // rows of its weight
  bool scatters = false;         // main: rows of its fragments are no rows of its output
  bool streams_by_data = false;  // main: its inputs say which panels of its weight it draws
  bool streams_pages = false;    // draws KV runs from its stream, as many as the step record says
  EpilogueNeeds needs = EpilogueNeeds::kNothing;
  const char* input = "";      // prologue, epilogue, main: the argument that the chain hands on
  const char* output = "";     // and the one it hands over
  i32 columns_per_output = 1;  // epilogue: input columns that make one output column
  bool in_place = false;       // output may lie where an input of the same dimensions lies
  bool (*can_fuse)(const std::byte* args) = nullptr;  // epilogue: null means always
};

// Walks an op's arguments in declaration order. `dims` names the dimensions ("M, D"; "M, 2N" is twice N;
// "." is a dimension without a name). An optional tensor that does not exist is not visited by most walkers.
class ArgVisitor {
 public:
  virtual ~ArgVisitor() = default;
  virtual void tensor(const char* name, Tensor& value, const char* dims, Access access) = 0;
  virtual void weight(const char* name, Weight& value, const char* dims) = 0;
  virtual void attribute(const char* name, i32& value) = 0;
  virtual void attribute(const char* name, float& value) = 0;
};

// A view of the values of a run, in fp64, for the reference of an op. Implemented by the harness.
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
  // Fills inputs where random values in [-1, 1] do not do (indices, step records); may be empty.
  std::function<void(std::byte* args, Values&)> prepare;
};

struct OpSpec {
  const char* name = "";
  const char* doc = "";
  size_t args_size = 0, args_fields = 0;
  void (*construct)(std::byte* args) = nullptr;
  void (*visit)(std::byte* args, ArgVisitor& visitor) = nullptr;
  // Checks the inputs and sets dtype (where unset) and sizes of the outputs. Throws Error.
  void (*infer)(std::byte* args) = nullptr;
  std::vector<TileAxis> (*axes)(const std::byte* args, const TilingTarget& target) = nullptr;
  // Regions of a tile that do not follow from the dimensions' names; null: all of them follow.
  void (*regions)(const std::byte* args, const TileCoord& tile, std::vector<Region>& out) = nullptr;
  // Arithmetic of a tile; its bytes follow from its regions.
  double (*flops)(const std::byte* args, const TileCoord& tile) = nullptr;
  // Bytes a tile draws ahead, where its regions say what it may draw; null: its weights' regions.
  double (*stream_bytes)(const std::byte* args, const TileCoord& tile) = nullptr;
  // On-chip bytes a tile needs beside its stream; null: none worth planning.
  i64 (*scratch)(const std::byte* args, const TileCoord& tile) = nullptr;
  void (*reference)(const std::byte* args, Values& values) = nullptr;
  std::vector<Case> (*cases)() = nullptr;
  OpTraits traits;
  std::vector<GradientCall> gradient;  // empty: it has none
};

// The registry, generated from the folders of heddle/ops.
std::span<const OpSpec* const> all_ops();
const OpSpec* find_op(std::string_view name);  // null when there is none
const OpSpec& get_op(std::string_view name);   // throws Error

// How the regions of an op's tiles follow from the names of its dimensions: made once per call, then cheap.
class RegionRule {
 public:
  RegionRule(const OpSpec& op, const std::byte* args);
  // `output_tile`: the tile of the operand named traits.output, in its own columns; it differs from `tile` for
  // a main op whose epilogues fold columns.
  void append(const TileCoord& tile, const TileCoord& output_tile, std::vector<Region>& out) const;

 private:
  struct Operand {
    Tensor tensor;
    Access access;
    // For each dimension: which tile coordinates bound it ({0, 1} or {2, 3}), scaled; -1: all of it.
    std::array<int, kMaxRank> coordinate;
    std::array<i32, kMaxRank> scale;
    bool output;
    bool indexed = false;
  };
  const OpSpec* op_;
  const std::byte* args_;
  std::vector<Operand> operands_;
};
// The bytes of tensor[box], box = {begin, end} for each dimension.
Region region_of(const Tensor& tensor, Access access, std::span<const std::array<i32, 2>> box);
Region whole(const Tensor& tensor, Access access, bool indexed = false);
// Tiles of a call where each range axis is cut in its preferred size.
std::vector<TileCoord> default_tiles(std::span<const TileAxis> axes);

// Binds a typed description to the erased functions of an OpSpec.
template <class Args>
const Args& as(const std::byte* args) {
  return *reinterpret_cast<const Args*>(args);
}
template <class Args>
Args& as(std::byte* args) {
  return *reinterpret_cast<Args*>(args);
}

// Adapts ArgVisitor to the calls that a `visit` makes.
struct VisitCalls {
  ArgVisitor& visitor;
  void read(const char* name, Tensor& value, const char* dims) {
    visitor.tensor(name, value, dims, Access::kRead);
  }
  void write(const char* name, Tensor& value, const char* dims) {
    visitor.tensor(name, value, dims, Access::kWrite);
  }
  void weight(const char* name, Weight& value, const char* dims) { visitor.weight(name, value, dims); }
  void attribute(const char* name, i32& value) { visitor.attribute(name, value); }
  void attribute(const char* name, float& value) { visitor.attribute(name, value); }
};

// An OpSpec whose erased parts serve `Args`; the caller fills in the rest.
template <class Args>
OpSpec op_of(const char* name, const char* doc) {
  OpSpec spec;
  spec.name = name;
  spec.doc = doc;
  spec.args_size = sizeof(Args);
  spec.args_fields = field_count<Args>();
  spec.construct = [](std::byte* args) { new (args) Args(); };
  spec.visit = [](std::byte* args, ArgVisitor& visitor) { Args::visit(as<Args>(args), VisitCalls{visitor}); };
  return spec;
}

}  // namespace heddle
