// The block of the GPU executors (tile/block.h): the consumer warps of one CTA, with one value per thread. `Edges` says what
// inputs() waits for and which ring panels come from; launch.cuh and megakernel.cuh each have one. A body that needs more than
// the Block language has a variant in a file x.sm80.cuh, which calls the generic body for the cases that it does not cover.
//
// Spills are expensive in a megakernel: each acquire empties the L1, so a spilled value is read from L2 again. On the hot path
// no variable has its address taken, every variable has a value on all paths (one that is assigned under a condition
// keeps a register throughout the kernel), values that live throughout a body lie on chip, and the thread index is read
// where it is used (arch::thread()).
//
// Kernels know their program: known_args.cpp writes what the arguments of an opcode's calls have in common into the source, so
// that most of a body's arguments are constants. Lengths of sequences are never known, nor is the number of rows in steps of
// many rows. With --generic, and in megakernels of steps of more than 8 rows, only facts that models of other sizes
// share are known ("forms"). tests/emulated_gpu runs all of this on a CPU.
#pragma once

#include "heddle/backend/cuda/device/gemm.cuh"
#include "heddle/backend/cuda/device/matmul.cuh"
#include "heddle/backend/cuda/device/matvec.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

// Ends the launch with CUDA_ERROR_ASSERT, and prints its text. The driver supplies it.
extern "C" __attribute__((noreturn)) void __assertfail(const char* text, const char* file, unsigned line,
                                                       const char* function, decltype(sizeof(0)) char_size);

// On-chip memory that a body takes and gives back like a stack. A request that does not fit is served from the worker's spill
// memory, which is slower.
constexpr i32 kScratchUnit = 128;

struct Scratch {
  i32 chip_bytes;
  const SpillRoom& room;
  const char* op = nullptr;  // the kernel's only op
  i32 chip_used = 0, spill_used = 0;

  // Addresses are computed when memory is taken: an address that is kept throughout a body is spilled.
  u8* chip() const { return arch::dynamic_shared(); }

  u8* take(i64 size, i32 most_on_chip = 1 << 30) {
    const i32 bytes = i32(size + kScratchUnit - 1) / kScratchUnit * kScratchUnit;
    if constexpr (!kHasSlabs) {
      // Such an op says how much it takes: all of it lies on chip, or none.
      u8* const at = (chip_bytes > 0 ? chip() : spill()) + chip_used;
      chip_used += bytes;
      if (chip_used > (chip_bytes > 0 ? chip_bytes : room.bytes))
        __assertfail("a tile takes no more scratch than its op's OpSpec::scratch says", op, 0, "take", 1);
      return at;
    }
    const bool fits = chip_used + bytes <= chip_bytes && bytes <= most_on_chip;
    u8* at = fits ? chip() + chip_used : spill() + spill_used;
    (fits ? chip_used : spill_used) += bytes;
    if (reinterpret_cast<u64>(at) % kScratchUnit != 0) __builtin_unreachable();
    return at;
  }

 private:
  u8* spill() const { return room.memory + i64(arch::multiprocessor()) * room.bytes; }
};

// The amount of scratch taken.
struct ScratchMark {
  i32 chip = 0, spill = 0;
};
struct ChipMemory {
  u8* data;
  i32 bytes;
};

constexpr i32 kLargestOperand = 1 << 30;  // on chip
constexpr i32 kMapBatch = 64 / kWarps;    // values that a thread makes before it uses the first
constexpr i32 kVocabBatch =
    80 / kWarps;  // 16-byte words of a vocabulary that it loads before it uses the first

// Two matrices on chip, right [n, k] and left [m, k].
struct Product {
  Plane left, right;

  View left_row(i32 m) const { return left.row(m); }
};

// The executor makes a new one for each tile.
template <class Edges>
class Block {
 public:
  using View = device::View;
  using Operand = device::Operand;
  using Fragment = Plane;

  // rows: the rows of the tile.
  Block(const Edges& edges, const Scratch& scratch, i32 rows)
      : edges_(edges), scratch_(scratch), rows_(rows) {}
  Edges& edges() { return edges_; }

  // These are for variants only: the threads, and scratch as a stack.
  static Team team() { return {}; }
  ScratchMark scratch_mark() const { return {scratch_.chip_used, scratch_.spill_used}; }
  // Gives back what was taken since the mark.
  void release(const ScratchMark& mark) { scratch_.chip_used = mark.chip, scratch_.spill_used = mark.spill; }
  // Gives back all that the tile took.
  void release_scratch() { release(ScratchMark{}); }
  // All scratch on chip, for a body that takes none in another way.
  ChipMemory chip() const { return {scratch_.chip(), scratch_.chip_bytes}; }

  void inputs() {
    if (waited_) return;
    edges_.wait();
    waited_ = true;
  }
  void sync() { sync_consumers(); }
  i32 rows(const TileCoord& tile) const { return kFewRows ? tile[1] - tile[0] : 1; }
  void dead() { edges_.dead(); }

  View row(const Tensor& tensor, auto... indices) {
    i64 at = 0;
    int d = 0;
    ((at += i64(indices) * tensor.stride[d++]), ...);
    return {tensor.data + at * size_of(tensor.dtype), tensor.dtype};
  }
  WeightRow weight_row(const Weight& weight, i32 row) { return {weight, row}; }

  template <class F>
  void map(i32 n, F&& f) {
    for (i32 i = i32(arch::thread()); i < n; i += kConsumers) f(Index{i});
  }
  // Makes kMapBatch values before it uses the first, so that loads do not wait for earlier stores. Past the end it makes the last
  // value again: a value that is assigned under a condition keeps a register throughout the kernel.
  template <class Make, class Use>
  void map(i32 n, Make&& make, Use&& use) {
    for (i32 i = i32(arch::thread()); i < n; i += kMapBatch * kConsumers) {
      float values[kMapBatch];
#pragma unroll
      for (i32 b = 0; b < kMapBatch; ++b) values[b] = make(Index{min(i + b * kConsumers, n - 1)});
#pragma unroll
      for (i32 b = 0; b < kMapBatch; ++b)
        if (i + b * kConsumers < n) use(Index{i + b * kConsumers}, values[b]);
    }
  }
  // If rows are shorter than the block, a thread stays in its column. In a single row, a thread has one element as a rule.
  template <class F>
  void map_rows(i32 count, i32 n, F&& f) {
    if (count == 1 || n > kConsumers) {
#pragma unroll 1
      for (i32 j = 0; j < count; ++j)
#pragma unroll 1
        for (i32 i = i32(arch::thread()); i < n; i += kConsumers) f(j, Index{i});
      return;
    }
    if (n == 0) return;
    const i32 at_once = kConsumers / n, column = i32(arch::thread()) % n;
    i32 j = i32(arch::thread()) / n;
    for (j = j < at_once ? j : count; j < count; j += at_once) f(j, Index{column});
  }
  template <class Make, class Use>
  void map_rows(i32 count, i32 n, Make&& make, Use&& use) {
    if (count == 1 || n > kConsumers)
      return map_rows(count, n, [&](i32 j, Index i) { use(j, i, make(j, i)); });
    if (n == 0) return;
    const i32 at_once = kConsumers / n, column = i32(arch::thread()) % n;
    i32 j = i32(arch::thread()) / n;
    for (j = j < at_once ? j : count; j < count; j += kMapBatch * at_once) {
      decltype(make(j, Index{column})) values[kMapBatch];
#pragma unroll
      for (i32 b = 0; b < kMapBatch; ++b) values[b] = make(min(j + b * at_once, count - 1), Index{column});
#pragma unroll
      for (i32 b = 0; b < kMapBatch; ++b)
        if (j + b * at_once < count) use(j + b * at_once, Index{column}, values[b]);
    }
  }
  template <class Op, class F>
  float reduce(i32 n, Op op, F&& f) {
    float mine = identity(op);
    map(n, f, [&](Index, float value) { mine = combine(op, mine, value); });
    return reduce(op, mine);
  }
  // Reduces the threads' values. Two buffers take turns: a thread may write one while others still read the other.
  template <class Op>
  float reduce(Op op, float mine) {
    __shared__ float warps[2][kWarps];
    mine = Team::over_warp(op, mine);
    turn_ ^= 1;
    if (arch::thread() % 32 == 0) warps[turn_][arch::thread() / 32] = mine;
    sync();
    float all = warps[turn_][0];
#pragma unroll
    for (i32 w = 1; w < kWarps; ++w) all = combine(op, all, warps[turn_][w]);
    return all;
  }
  // Each warp reduces one row at a time.
  template <class Op, class F>
  void reduce_rows(View out, i32 count, i32 n, Op op, F&& f) {
    for (i32 j = i32(arch::thread() / 32); j < count; j += kWarps) {
      float mine = identity(op);
      for (i32 i = i32(arch::thread() % 32); i < n; i += 32) mine = combine(op, mine, f(j, Index{i}));
      mine = Team::over_warp(op, mine);
      if (arch::thread() % 32 == 0) out.from(j).store(Index{0}, mine);
    }
  }
  template <class F>
  Best argmax(i32 n, F&& f) {
    float value = identity(Max());
    i32 index = n;
    map(n, f, [&](Index i, float other) {
      if (is_better(other, value)) value = other, index = i.at;
    });
    return best_of(value, index, n);
  }
  Best argmax(View row, i32 n) {
    if (row.dtype != DType::kF32 || n % 4 != 0 || reinterpret_cast<u64>(row.data) % 16 != 0)
      return argmax(n, [&](Index i) { return row.load(i); });
    const auto* from = reinterpret_cast<const float4*>(row.data);
    const auto load = [&](i32 begin, float4(&words)[kVocabBatch]) {
#pragma unroll
      for (i32 b = 0; b < kVocabBatch; ++b) words[b] = from[min(begin + b * kConsumers, n / 4 - 1)];
    };
    float value = identity(Max());
    i32 index = n;
    float4 words[kVocabBatch], next[kVocabBatch];
    load(i32(arch::thread()), words);
#pragma unroll 1
    for (i32 i = i32(arch::thread()); i < n / 4; i += kVocabBatch * kConsumers) {
      load(i + kVocabBatch * kConsumers, next);
#pragma unroll
      for (i32 b = 0; b < kVocabBatch; ++b) {
        const float four[4] = {words[b].x, words[b].y, words[b].z, words[b].w};
#pragma unroll
        for (i32 k = 0; k < 4; ++k)
          if (is_better(four[k], value)) value = four[k], index = 4 * min(i + b * kConsumers, n / 4 - 1) + k;
        words[b] = next[b];
      }
    }
    return best_of(value, index, n);
  }
  // The best of all threads' bests, each with its index. Ties go to the lowest index.
  Best best_of(float value, i32 index, i32 n) {
    const float best = reduce(Max(), value);
    // Indices are exact as floats below 2^24.
    const bool is_best = value == best || (value != value && best != best);
    const float first = reduce(Min(), is_best ? float(index) : float(n));
    return {best, first < float(n) ? i32(first) : 0};
  }
  float index(Index i) const { return float(i.at); }
  // The first warp does this; its lanes vote.
  template <class F>
  i32 select(i32 n, View out, F&& f) {
    __shared__ i32 found;
    sync();  // all threads have read the count of the previous call
    if (arch::thread() < 32) {
      const i32 lane = i32(arch::thread());
      i32 count = 0;
      for (i32 first = 0; first < n; first += 32) {
        const bool holds = first + lane < n && f(first + lane);
        const u32 votes = __ballot_sync(~0u, holds);
        if (holds)
          reinterpret_cast<i32*>(out.data)[count + __popc(votes & ((1u << lane) - 1))] = first + lane;
        count += __popc(votes);
      }
      if (lane == 0) found = count;
    }
    sync();
    return found;
  }

  View scratch(i32 n) { return {scratch_.take(i64(n) * 4), DType::kF32}; }

  // A single row keeps more bits than a 16-bit weight has, unless the weight's dtype holds it exactly (`exact`): as two bf16
  // (kSplit) for tensor cores, else as f32. Several rows are rounded to the weight's dtype. Columns are padded with zeros to the
  // unit that a product reads. In tiles of more than kStreamRows rows the operand goes to global memory, even if few rows are
  // asked for, because the asynchronous copies of gemm.cuh read it from there.
  Operand operand(i32 rows, i32 cols, DType dtype, bool exact = false) {
    const bool alone = rows == 1 && !many_rows();
    const DType stored = !alone || exact ? dtype : dtype == DType::kBf16 ? kSplit : DType::kF32;
    return operand_of(rows, cols, stored, dtype == DType::kBf16 ? kBlockCols : 16);
  }
  // The operand of a product with w: rows are halves of f16 (kScaledHalves) where codes come from the ring.
  Operand operand(i32 rows, i32 cols, const Weight& w, bool exact = false) {
    if (multiplies_codes(w)) return operand_of(rows, cols, kScaledHalves, CodePanel::kBlock);
    return operand(rows, cols, w.data.dtype, exact);
  }
  // Rows of a tensor, in place if mma can read them there. Call it after inputs(). It uses no size that depends on the rank, so
  // that a tensor that a body makes itself stays in registers.
  template <class Kind>
  Operand operand(const Tensor& tensor, i32 row, i32 rows, const Kind& dtype_or_weight) {
    const Operand x = operand_place(tensor, row, rows, dtype_or_weight);
    copy_rows(tensor, row, x);
    return x;
  }
  // operand(tensor, ...) in two steps: the place, which is known before inputs(), and the copy.
  Operand operand_place(const Tensor& tensor, i32 row, i32 rows, DType dtype) {
    const Plane there = rows_of(tensor, row, rows);
    if (many_rows() && tensor.dtype == dtype) return {there};
    return operand(rows, tensor.size[1], dtype, tensor.dtype == DType::kBf16 && dtype == DType::kBf16);
  }
  Operand operand_place(const Tensor& tensor, i32 row, i32 rows, const Weight& w) {
    if (multiplies_codes(w)) return operand(rows, tensor.size[1], w);
    return operand_place(tensor, row, rows, w.data.dtype);
  }
  void copy_rows(const Tensor& tensor, i32 row, const Operand& x) {
    const Plane there = rows_of(tensor, row, x.rows);
    if (there.data == x.data) return;
    for (i32 m = 0; m < x.rows; ++m) {
      if (copy_words(there.row(m), x.row(m), tensor.size[1])) continue;
      map(
          tensor.size[1], [&](Index i) { return there.row(m).load(i); },
          [&](Index i, float value) { x.row(m).store(i, value); });
    }
  }
  Fragment fragment(i32 m0, i32 rows, i32 n0, i32 cols) {
    const i32 mark = scratch_.chip_used;
    if constexpr (!kHasRing) spill_mark_ = scratch_.spill_used;
    const i64 stride = kHasSlabs && many_rows() ? fragment_stride(cols) : i64(cols) * 4;
    if constexpr (!kHasSlabs)
      return {scratch_.take(rows * stride), DType::kF32, rows, cols, m0, n0, stride, mark};
    // A fragment on chip leaves room for the slabs of gemm.cuh, unless these may use the fragment's own memory. In a call of an op
    // by itself, the host has decided whether there is memory off chip (memory_of in executors/op_call.cpp).
    i32 most = scratch_.chip_bytes / 3 * (is_one_tile(rows, cols) ? 2 : 1);
    if constexpr (kHasRing) {
      if (many_rows() && !leaves_room_for_slabs(rows, cols, rows * stride, scratch_.chip_bytes - mark))
        most = 0;
    } else if (scratch_.room.bytes == 0) {
      most = scratch_.chip_bytes;
    }
    return {scratch_.take(rows * stride, most), DType::kF32, rows, cols, m0, n0, stride, mark};
  }
  void release(const Fragment& fragment) {
    sync();
    scratch_.chip_used = fragment.mark;
    if constexpr (!kHasRing) scratch_.spill_used = spill_mark_;
  }

  template <class Chosen = ProductSizes<>>
  void mma(Fragment& fragment, const Operand& x, const Weight& w, Chosen = {}) {
    using Sizes = ProductSizes<Chosen::kColumns, Chosen::kStages>;
    if constexpr (kHasRing) {
      if (!uses_ring(w, rows_)) return from_memory<Sizes>(fragment, x, w);
      from_ring(fragment, x, w);
    } else {
      from_memory<Sizes>(fragment, x, w);
    }
  }
  bool draws(const Weight& w) const { return uses_ring(w, rows_); }
  // Prepares the product of one row with columns [first, last) of a weight from the ring. It does what needs no operand before
  // inputs(), where the tile waits anyway.
  __forceinline__ Drawn draw(const Weight& w, i32 first, i32 last) {
    return {edges_.ring(), w, last - first};
  }
  // Each thread calls ask(columns) before the product, when only the place and number of its columns are known, and
  // use(columns, ahead) after it, with what ask returned. A thread has at most two columns of a batch, and may have none.
  template <class Ask, class Use>
  __forceinline__ void mma(Drawn& drawn, const Operand& x, const Weight& w, i32 first, i32 last, Ask&& ask,
                           Use&& use) {
    static_assert(kRowColumns <= 2 * kConsumers);
    const auto mine = [&](i32 from, i32 cols) {
      const i32 i = 2 * i32(arch::thread());
      return Columns{first + from + i, min(2, cols - i), {}};
    };
    from_ring(drawn, last - first, x, w,
              ColumnUse{[&](i32 from, i32 cols) { return ask(mine(from, cols)); },
                        [&](i32 from, i32 cols, const float* sums, const auto& ahead) {
                          Columns columns = mine(from, cols);
                          if (columns.count <= 0) return;
                          const float* of = sums + 2 * i32(arch::thread()) * kWarps;
                          columns.value[0] = sum_of_warps(of);
                          columns.value[1] = sum_of_warps(of + (columns.count - 1) * kWarps);
                          use(columns, ahead);
                        }});
  }
  // The ring already holds the panels of this matrix.
  void mma(Fragment& fragment, const Operand& x, const Weight& w, i32 matrix) {
    if constexpr (kHasRing) {
      if (!uses_ring(w, rows_)) return from_memory(fragment, x, w.matrix(matrix));
      from_ring(fragment, x, w);
    } else {
      from_memory(fragment, x, w.matrix(matrix));
    }
  }

  // Rows of the right matrix begin one bank apart, so that neighbouring threads read different banks.
  Product product(i32 m, i32 n, i32 k, DType dtype) {
    const i64 left = i64(k) * 4, right = (i64(k) * size_of(dtype) + 3) / 4 * 4 + 4;
    const Product made{{scratch_.take(m * left), DType::kF32, m, k, 0, 0, left, 0},
                       {scratch_.take(n * right), dtype, n, k, 0, 0, right, 0}};
    map_rows(n, k, [&](i32 row, Index i) { made.right.row(row).store(i, 0.0f); });
    sync();
    return made;
  }
  void set_right_rows(const Product& product, i32 s, i32 at, const Lines<View>& lines) {
    map_rows(
        lines.count, lines.size, [&](i32 j, Index i) { return lines[j].load(i); },
        [&](i32 j, Index i, float value) { product.right.row(s + j).from(at).store(i, value); });
  }
  void set_right_columns(const Product& product, i32 s, const Lines<View>& lines) {
    map_rows(
        lines.count, lines.size, [&](i32 j, Index i) { return lines[j].load(i); },
        [&](i32 j, Index i, float value) { product.right.row(i.at).from(s + j).store(Index{0}, value); });
  }
  void mma(Fragment& fragment, const Product& product) {
    map_rows(fragment.rows, fragment.cols, [&](i32 m, Index n) {
      const View left = product.left_row(m), right = product.right.row(n.at);
      float sum = 0;
      for (i32 k = 0; k < product.left.cols; ++k) sum = fma(left.get(k), right.get(k), sum);
      fragment.row(m).store(n, sum);
    });
  }

  // The product of two matrices as they lie in memory: fragment[m, n] = sum_k a[m0 + m, k] b[k, n0 + n].
  __forceinline__ void mma(Fragment& fragment, const Matrix& a, const Matrix& b) {
    const SlabRoom room = room_of(fragment);
    __threadfence();  // asynchronous copies bypass the L1 that another tile may have written through
    by_matrices(fragment, a, b, room);
  }

  const StepHost& host(const Tensor& tensor) { return edges_.host(tensor); }
  // All threads call it together; before inputs() only if knows_device().
  const StepDevice& device(const Tensor& tensor) { return edges_.device(tensor); }
  bool knows_device() { return edges_.knows_device(); }
  const i32* ints(const Tensor& tensor) { return reinterpret_cast<const i32*>(tensor.data); }

 private:
  // True if products read their operands in memory: they have many rows, or there is no ring.
  bool many_rows() const { return kManyRows && (!kHasRing || rows_ > kStreamRows); }

  // True if the weight's codes come from the ring.
  bool multiplies_codes(const Weight& w) const {
    return kReadsCodes && kHasRing && w.is_streamed() && !many_rows();
  }
  // Columns are padded to a multiple of `unit`. Two to eight rows begin half a line of banks apart.
  Operand operand_of(i32 rows, i32 cols, DType stored, i32 unit) {
    const i32 padded = (cols + unit - 1) / unit * unit;
    const i64 bytes = is_in_halves(stored) ? 4 : size_of(stored);
    const i64 stride = rows == 1 || many_rows() ? padded * bytes : i64(padded + 63) / 64 * 64 * bytes + 64;
    Operand x{{scratch_.take(rows * stride, many_rows() ? 0 : kLargestOperand), stored, rows, cols, 0, 0,
               stride, 0}};
    map_rows(rows, padded - cols, [&](i32 m, Index i) { x.row(m).store(i + cols, 0.0f); });
    return x;
  }
  Plane rows_of(const Tensor& tensor, i32 row, i32 rows) {
    return {this->row(tensor, row).data,
            tensor.dtype,
            rows,
            tensor.size[1],
            0,
            0,
            tensor.stride[0] * size_of(tensor.dtype),
            0};
  }
  // Copies rows of whole 16-byte words, several per thread at a time. False: rows of another kind.
  static bool copy_words(const View& from, const OperandRow& to, i32 columns) {
    if (columns % 8 != 0 || !in_octets(from) || !in_octets(to)) return false;
    constexpr i32 kAtOnce = 4;
    const bool same = from.dtype == to.dtype && from.dtype == DType::kBf16;
#pragma unroll 1
    for (i32 begin = i32(arch::thread()); begin < columns / 8; begin += kAtOnce * kConsumers) {
      Octet octets[kAtOnce];
#pragma unroll
      for (i32 n = 0; n < kAtOnce; ++n)
        if (const i32 at = begin + n * kConsumers; at < columns / 8) octets[n].load(from, at);
#pragma unroll
      for (i32 n = 0; n < kAtOnce; ++n) {
        if (!same) octets[n].decode(from.dtype);
        if (const i32 at = begin + n * kConsumers; at < columns / 8)
          same ? octets[n].store_as_loaded(to.data, at) : store_octet(octets[n], to, at);
      }
    }
    return true;
  }

  void from_ring(Fragment& fragment, const Operand& x, const Weight& w) {
    Drawn drawn(edges_.ring(), w, fragment.cols);
    from_ring(drawn, fragment.cols, x, w,
              ColumnUse{[](i32, i32) { return 0; },
                        [&](i32 from, i32 cols, const float* sums, int) {
                          const i32 rows = kFewRows ? x.rows : 1;
                          for (i32 m = 0; m < rows; ++m, sums += cols * kWarps)
                            for (i32 i = i32(arch::thread()); i < cols; i += kConsumers)
                              fragment.row(m).store(Index{from + i}, sum_of_warps(sums + i * kWarps));
                        }});
  }
  template <class F>
  __forceinline__ void from_ring(Drawn& drawn, i32 all, const Operand& x, const Weight& w, F&& use) {
    if constexpr (kUses[int(DType::kBf16)])
      if (w.data.dtype == DType::kBf16) return from_ring<DType::kBf16>(drawn, all, x, w, use);
    if constexpr (kUses[int(DType::kF16)])
      if (w.data.dtype == DType::kF16) return from_ring<DType::kF16>(drawn, all, x, w, use);
    if constexpr (kUses[int(DType::kF32)])
      if (w.data.dtype == DType::kF32) return from_ring<DType::kF32>(drawn, all, x, w, use);
  }
  template <DType kType, class F>
  __forceinline__ void from_ring(Drawn& drawn, i32 all, const Operand& x, const Weight& w, F&& use) {
    const i32 mark = scratch_.chip_used;
    // Whole items, as many as leave room on chip for the warps' sums.
    constexpr i32 kItemColumns = kItemPanels * kStreamPanelRows;
    const i32 columns = min(all, x.rows == 1 ? kRowColumns : kItemColumns);
    auto* partial = reinterpret_cast<float*>(scratch_.take(2 * x.rows * columns * kWarps * 4));
    multiply_from_ring<kType>(drawn, all, x, w, partial, columns, use);
    edges_.ring() = drawn.walk.ring();
    scratch_.chip_used = mark;
  }
  // The memory on chip that slabs of a product may have.
  SlabRoom room_of(const Fragment& fragment) const {
    // `last` says that no scratch was taken after the fragment.
    const i32 own = scratch_.chip_used - fragment.mark;
    const bool last = own < fragment.rows * fragment.stride + kScratchUnit;
    return {scratch_.chip() + scratch_.chip_used, scratch_.chip_bytes - scratch_.chip_used, last ? own : 0};
  }
  template <class Sizes = ProductSizes<>>
  void from_memory(Fragment& fragment, const Operand& x, const Weight& w) {
    const SlabRoom room = room_of(fragment);
    __threadfence();  // asynchronous copies bypass the L1 that the operand was written through
    if constexpr (kManyRows)
      if (by_slabs<Sizes>(fragment, x, w, room)) return;
    multiply_by_thread(fragment, x, w);
  }

  // These take their arguments by value: a variable whose address is taken lies in local memory from then on.
  template <class Sizes>
  static __forceinline__ bool by_slabs(Plane fragment, Plane x, Weight w, SlabRoom room) {
    if constexpr (kUses[int(DType::kF8E4M3)])
      if (w.coding.code == Code::kF8E4M3) return by_slabs<DType::kF8E4M3, Sizes>(fragment, x, w, room);
    if constexpr (kUses[int(DType::kI4)])
      if (w.coding.code == Code::kI4) return by_slabs<DType::kI4, Sizes>(fragment, x, w, room);
    if constexpr (kUses[int(DType::kBf16)] && kReadsFloats)
      if (x.dtype == DType::kBf16) return by_slabs<DType::kBf16, Sizes>(fragment, x, w, room);
    if constexpr (kUses[int(DType::kF16)])
      if (x.dtype == DType::kF16) return by_slabs<DType::kF16, Sizes>(fragment, x, w, room);
    return false;
  }
  template <DType kStored, class Sizes>
  static __forceinline__ bool by_slabs(Plane fragment, Plane x, Weight w, SlabRoom room) {
    // Buffers of a program begin at whole words; a caller's rows may begin anywhere.
    const bool in_words = kHasRing || reinterpret_cast<u64>(x.data) % 16 == 0;
    const ProductRows rows{x.dtype, x.rows, x.cols, x.stride, in_words};
    return product_path(w, rows, {.has_slabs = true}) == ProductPath::kSlabs &&
           multiply_many_rows<kStored, Sizes>(fragment, x, w, room);
  }

  static __forceinline__ void by_matrices(Plane fragment, Matrix a, Matrix b, SlabRoom room) {
    const DType product = product_dtype(a, b);
    const bool done = product_path(a, b) == ProductPath::kMultiplyAdds
                          ? multiply_matrices<ThreadProduct>(fragment, a, b, product, room)
                          : multiply_matrices<SquareProduct>(fragment, a, b, product, room);
    if (!done) multiply_elements(fragment, a, b, product);
  }

  // Panels of any shape and any number of rows: one dot product per thread, from memory.
  void multiply_by_thread(Fragment& fragment, const Operand& x, const Weight& w) {
    map_rows(fragment.rows, fragment.cols, [&](i32 m, Index c) {
      const WeightRow row{w, fragment.n0 + c.at};
      float sum = 0;
      for (i32 k = 0; k < w.cols(); ++k) sum = fma(x.element(m, k), row.load(Index{k}), sum);
      fragment.row(m).store(c, sum);
    });
  }

  Edges edges_;
  Scratch scratch_;
  i32 rows_;
  bool waited_ = false;
  u32 turn_ = 0;
  // Spill memory that was taken before the last fragment. A program's spill memory has room for all that a tile takes; a caller's
  // has room for one operand and one fragment.
  i32 spill_mark_ = 0;
};

}  // namespace heddle::device
