// The Block language: what a tile body may use. A body is one source for every backend: on a CPU a block is
// one thread with SIMD, on a GPU one CTA. Bodies never name threads, lanes or addresses.
//
//   block.inputs()             waits until the tile's inputs may be read; before it only stream data may be touched
//   block.sync()               what any thread wrote to scratch, operand or fragment is visible to all after it
//   block.rows(tile)           of a tile whose first axis is rows: their number, {begin, end}
//   block.dead()               records that this tile has no work in this step (then return)
//
//   block.row(tensor, i...)    View of one row: the last dimension of `tensor` at the leading indices i...
//   view.load(i) store(i, v)   value at index i, converted from and to the tensor's dtype
//   view.load_pair(i)          {first, second} = elements 2i, 2i + 1;  store_pair(i, first, second)
//   view.load_rounded(i, dtype)   what a load of element i gives after it was stored as `dtype`
//   view.load_bit(i)           1 or 0: bit i of the 32-bit words of the view
//   view.get(j) set(j, float)  one element, the same for all threads
//   view.get_int(j) set_int    32-bit word j as an integer, whatever the dtype
//   view.set_byte(j, value)    byte j, the lowest of `value`, whatever the dtype
//   view.from(j)               the view that begins j elements later
//   view.every(n)              every n-th element of the view: a column of a matrix; load and store only
//   block.weight_row(weight, r)   row r of a packed weight, read through its panels: load only
//
//   block.map(n, f)            f(i) for all i < n, each i once; i is an Index: a lane group on a CPU, a thread on a GPU
//   block.map(n, make, use)    use(i, make(i)) for all i < n; what make loads, use has not stored
//   block.map_rows(count, n, f)   f(j, i) for all j < count and i < n: a map over the rows of a matrix
//   block.map_rows(count, n, make, use)   use(j, i, make(j, i)); what make loads, use has not stored
//   block.reduce(n, op, f)     op over f(i), i < n, in a fixed order; the same float for all threads
//   block.reduce_rows(out, count, n, op, f)   out[j] = op over f(j, i), i < n, for all j < count
//   block.argmax(n, f)         {value, index} of the largest f(i), lowest index first; block.argmax(view, n): of a row. In maxima and
//                              minima NaN counts before all numbers, so that it stays
//   block.index(i)             the Index as a float value (exact below 2^24)
//   block.select(n, out, f)    those i < n, ascending, for which f(i) holds (a plain i32), as integers in `out`; their
//                              number
//
//   block.scratch(n)           View of n floats on chip, for the life of the tile
//   block.operand(rows, cols, dtype)     on-chip matrix that mma reads, after a sync; operand.row(m) is a View that is
//                              stored to only
//   block.operand(tensor, m0, rows, dtype)   rows of a tensor as such a matrix: a copy, or in place
//                              (both take a weight in place of its dtype, and must where the weight may be stored in codes)
//   block.fragment(m0, rows, n0, cols)   on-chip f32 matrix at place (m0, n0) of the output; fragment.row(m) is a View
//   block.mma(fragment, operand, weight) fragment[m, c] = sum_k operand[m, k] * weight[n0 + c, k], FP32 accumulation,
//                              fixed order in k; takes the weight's panels from the stream in ascending order
//
//   block.product(m, n, k, dtype)   two on-chip matrices: left [m, k], and right [n, k] of `dtype`, zeros at first;
//                              product.left_row(m) is a View that is stored to only
//   block.set_right_rows(product, s, at, lines)   right[s + j, at + i] = lines[j].load(i) for all j < lines.count and
//                              i < lines.size
//   block.set_right_columns(product, s, lines)    right[i, s + j] = lines[j].load(i), the same
//   block.mma(fragment, product)   fragment[m, n] = sum_k left[m, k] * right[n, k], FP32 accumulation, fixed order
//
//   block.mma(fragment, a, b)  fragment[m, n] = sum_k a[m0 + m, k] * b[k, n0 + n] of two matrices in memory, FP32
//                              accumulation, fixed order in k
//
//   block.mma(fragment, operand, weight, i)   the same with matrix i of the weight
//   block.mma(fragment, operand, weight, sizes)   the same, on a GPU in tiles of at most kColumns columns and in at
//                              most kStages stages, constants of `sizes`; they change no bit
//   block.panels(weight, first, last)   in `stream` only: the tile will draw these panels of whole fragments; where
//                              inputs choose them (streams_by_data), `stream` runs when they are there
//   block.host(tensor), block.device(tensor)   the step record's two parts, as pointers
//   block.ints(tensor)         the begin of an i32 tensor, as a pointer
//
// i32 elements are only moved: load and store keep their bits. set, set_int and set_byte are done by one thread: what they and
// the maps stored is read at another index, or by get, only after block.sync().
//
// Values (Index -> View.load) are `Value`: a lane vector or a float. Arithmetic + - * / and unary - work between
// values and with floats. Functions of values are in tile/math.cuh. Ops of a reduction: Sum, Max, Min below.
// Read by host and device: no standard headers.
#pragma once

namespace heddle {

struct Sum {};
struct Max {};
struct Min {};

// The result of argmax.
struct Best {
  float value;
  int index;
};

// True if `a` takes the place of `b` in a maximum: if it is larger, or the first NaN.
constexpr bool is_better(float a, float b) {
  return !(a <= b) && b == b;
}

// `count` rows of `size` elements each, `stride` elements apart.
template <class View>
struct Lines {
  View first;
  long long stride;
  int count, size;

  View operator[](int j) const { return first.from(j * stride); }
};
template <class View>
Lines(View, long long, int, int) -> Lines<View>;

}  // namespace heddle
