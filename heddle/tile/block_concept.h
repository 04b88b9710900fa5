// The Block language (tile/block.h) as concepts: what a tile body may use, every block has. Backends assert it of theirs.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/base/dtype.h"
#include "heddle/tile/block.h"

namespace heddle {

struct Tensor;
struct Weight;
struct Matrix;
struct TileCoord;
struct StepHost;
struct StepDevice;

namespace language {

template <class A, class B>
constexpr bool kIsSame = false;
template <class A>
constexpr bool kIsSame<A, A> = true;
template <class A, class B>
concept Is = kIsSame<A, B>;

// Stands for what a body hands over.
struct Function {
  template <class... Arguments>
  float operator()(Arguments...) const;
};

// One row, by the indices that map gives.
template <class View, class Index>
concept Loads = requires(View view, Index i) { view.load(i); };
template <class View, class Index>
concept Stores = requires(View view, Index i, float value) { view.store(i, value); };
template <class View, class Index>
concept StoresPairs = Stores<View, Index> && requires(View view, Index i, float value, int n) {
  view.store_pair(i, value, value);
  view.from(n).store(i, value);
};
template <class View, class Index>
concept HasIndices = Loads<View, Index> && StoresPairs<View, Index> && requires(View view, Index i, int n) {
  i + n;
  view.load_pair(i).first;
  view.load_pair(i).second;
  view.load_rounded(i, DType::kBf16);
  view.load_bit(i);
  requires Loads<decltype(view.every(n)), Index> && Stores<decltype(view.every(n)), Index>;
};

// A row by elements, which all threads see alike.
template <class View>
concept HasElements = requires(View view, int j, float value) {
  { view.get(j) } -> Is<float>;
  { view.get_int(j) } -> Is<int>;
  view.set(j, value);
  view.set_int(j, j);
  view.set_byte(j, j);
  view.from(j);
};

template <class B, class Index>
concept HasIndex = HasIndices<typename B::View, Index> && requires(B& block, Index i, const Weight& weight,
                                                                   typename B::Operand operand,
                                                                   typename B::Fragment fragment) {
  block.index(i);
  requires Loads<decltype(block.weight_row(weight, 0)), Index>;
  requires HasIndices<decltype(block.scratch(1)), Index> && HasIndices<decltype(fragment.row(0)), Index>;
  requires StoresPairs<decltype(operand.row(0)), Index>;
  requires Stores<decltype(block.product(1, 1, 1, DType::kF32).left_row(0)), Index>;
};

// The sizes of products that a body may choose.
struct Sizes {
  static constexpr int kColumns = 256, kStages = 4;
};

}  // namespace language

// The language of `stream`: the block has it, and the loader that draws panels.
template <class B>
concept PanelStream = requires(B& block, const Tensor& tensor, const Weight& weight) {
  block.panels(weight, 0, 1);
  { block.host(tensor) } -> language::Is<const StepHost&>;
  { block.ints(tensor) } -> language::Is<const int*>;
};

// Waiting, rows, the step record.
template <class B>
concept TileBlock = requires(B& block, const Tensor& tensor, const TileCoord& tile) {
  block.inputs();
  block.sync();
  block.dead();
  { block.rows(tile) } -> language::Is<int>;
  { block.row(tensor, 0, 0) } -> language::Is<typename B::View>;
  { block.host(tensor) } -> language::Is<const StepHost&>;
  { block.device(tensor) } -> language::Is<const StepDevice&>;
  { block.ints(tensor) } -> language::Is<const int*>;
};

template <class B>
concept MapBlock = requires(B& block, typename B::View view, language::Function f, int n) {
  block.map(n, f);
  block.map(n, f, f);
  block.map_rows(n, n, f);
  block.map_rows(n, n, f, f);
  { block.reduce(n, Sum(), f) } -> language::Is<float>;
  { block.reduce(n, Max(), f) } -> language::Is<float>;
  { block.reduce(n, Min(), f) } -> language::Is<float>;
  block.reduce_rows(view, n, n, Max(), f);
  { block.argmax(n, f) } -> language::Is<Best>;
  { block.argmax(view, n) } -> language::Is<Best>;
  { block.select(n, view, f) } -> language::Is<int>;
};

// Memory on chip and products. A fragment that is released gives back what was taken since it was made.
template <class B>
concept ProductBlock =
    requires(B& block, const Tensor& tensor, const Weight& weight, typename B::Operand operand,
             typename B::Fragment fragment, const Lines<typename B::View>& lines, int n) {
      block.scratch(n);
      { block.operand(n, n, DType::kF32) } -> language::Is<typename B::Operand>;
      { block.operand(tensor, n, n, DType::kF32) } -> language::Is<typename B::Operand>;
      { block.operand(n, n, weight) } -> language::Is<typename B::Operand>;
      { block.operand(tensor, n, n, weight) } -> language::Is<typename B::Operand>;
      { block.fragment(n, n, n, n) } -> language::Is<typename B::Fragment>;
      block.release(fragment);
      block.mma(fragment, operand, weight);
      block.mma(fragment, operand, weight, n);
      block.mma(fragment, operand, weight, language::Sizes());
      block.mma(fragment, block.product(n, n, n, DType::kF32));
      block.set_right_rows(block.product(n, n, n, DType::kF32), n, n, lines);
      block.set_right_columns(block.product(n, n, n, DType::kF32), n, lines);
      operand.rows = n;
      requires language::Is<decltype(fragment.rows), int> && language::Is<decltype(fragment.cols), int>;
      requires language::Is<decltype(fragment.m0), int> && language::Is<decltype(fragment.n0), int>;
    };

template <class B>
concept MatrixBlock = requires(B& block, typename B::Fragment fragment, const Matrix& matrix) {
  block.mma(fragment, matrix, matrix);
};

// A block whose map gives indices of these types.
template <class B, class... Index>
concept Block = TileBlock<B> && MapBlock<B> && ProductBlock<B> && MatrixBlock<B> &&
                language::HasElements<typename B::View> && (language::HasIndex<B, Index> && ...);

}  // namespace heddle
