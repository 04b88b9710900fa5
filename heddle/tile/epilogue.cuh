// An epilogue says once what becomes of a value; its walks over a tile are written here and, for columns that a GPU has in
// registers, in device/chain.cuh. Included once per target, inside its namespace, before the bodies of ops.
//
// An op's body derives from Epilogue<Body> and has
//
//   input(a), output(a)        the tensors it reads and writes when it runs by itself
//   value(a, x)                what becomes of x; with kTakes = 2, of the pair x = {first, second} of columns 2i and 2i + 1
//   value(a, x, operand)       the same, with what its operand has in the same columns
//   other(a)                   the operand, a matrix of the same shape; or operand(block, a, row): View of what row `row` takes
//
// and, where what Epilogue says below is not right,
//
//   kTakes, kGives             columns that value() takes and gives: 1 and 1, 2 and 2, or 2 and 1
//   each_span(a, begin, end, f)   where the op changes some columns only: f(column, inside, count) for those in [begin, end),
//                              `count` values or pairs from `column` on, whose operand begins at its element `inside`
//   keep(block, a, row, column, i, y)   stores y, that of index i from `column` on, in another output too
//
// and for columns in registers, of which a pair begins at an even one: can_fuse refuses others
//
//   changes(a, column)         whether the op changes this column; the one of a pair's first
//   operand_column(a, column)  the operand's element for it; any that exists where the op does not change it
template <class Op>
struct Epilogue {
  static constexpr i32 kTakes = 1, kGives = 1;

  template <class Block, class Args, class Index, class Value>
  static void keep(Block&, const Args&, i32, i32, Index, Value) {}

  template <class Args>
  static bool changes(const Args&, i32) {
    return true;
  }
  template <class Args>
  static i32 operand_column(const Args&, i32 column) {
    return column;
  }

  template <class Block, class Args>
    requires requires(const Args& a) { Op::other(a); }
  static auto operand(Block& block, const Args& a, i32 row) {
    return block.row(Op::other(a), row);
  }

  template <class Block, class Args>
  static constexpr bool has_operand() {
    return requires(Block& block, const Args& a) { Op::operand(block, a, 0); };
  }

  // All columns at once; an op that changes only some hides this.
  template <class Args, class F>
  static void each_span(const Args&, i32 begin, i32 end, F&& f) {
    f(begin, begin, (end - begin) / Op::kTakes);
  }
  static constexpr i32 folds() {
    return Op::kTakes / Op::kGives;
  }  // columns of the input for each of the output

  // The op by itself. The output may lie in place of the input or the operand: an element is stored when all that it is made
  // of was loaded.
  template <class Block, class Args>
  static void run(Block& block, const Args& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row)
      Op::each_span(a, t[2] * folds(), t[3] * folds(), [&](i32 column, i32 inside, i32 count) {
        auto from = block.row(Op::input(a), row).from(column);
        auto to = block.row(Op::output(a), row).from(column / folds());
        const auto put = [&](auto i, auto y) {
          store(to, i, y);
          Op::keep(block, a, row, column / folds(), i, y);
        };
        if constexpr (has_operand<Block, Args>()) {
          auto operand = Op::operand(block, a, row).from(inside);
          block.map(count, [&](auto i) { put(i, Op::value(a, load(from, i), load(operand, i))); });
        } else {
          block.map(count, [&](auto i) { put(i, Op::value(a, load(from, i))); });
        }
      });
  }

  // A product's fragment, in place; one of half as many columns takes its place where pairs become one value each.
  template <class Block, class Args, class Fragment>
  static void epilogue(Block& block, const Args& a, Fragment& fragment) {
    if constexpr (folds() > 1) {
      Fragment folded = block.fragment(fragment.m0, fragment.rows, fragment.n0 / 2, fragment.cols / 2);
      walk(block, a, fragment, folded, 0, fragment.n0, folded.cols);
      block.sync();
      fragment = folded;
    } else {
      Op::each_span(a, fragment.n0, fragment.n0 + fragment.cols, [&](i32 column, i32 inside, i32 count) {
        walk(block, a, fragment, fragment, column - fragment.n0, inside, count);
      });
      block.sync();
    }
  }

 private:
  // From column `at` of the fragment on; what is made of `from` goes to `to`. Operands, or else values, may be made early.
  template <class Block, class Args, class Fragment>
  static void walk(Block& block, const Args& a, Fragment& from, Fragment& to, i32 at, i32 inside, i32 count) {
    const auto put = [&](i32 m, auto i, auto y) {
      store(to.row(m).from(at / folds()), i, y);
      Op::keep(block, a, to.m0 + m, to.n0 + at / folds(), i, y);
    };
    if constexpr (has_operand<Block, Args>())
      block.map_rows(
          from.rows, count,
          [&](i32 m, auto i) { return load(Op::operand(block, a, from.m0 + m).from(inside), i); },
          [&](i32 m, auto i, auto operand) {
            put(m, i, Op::value(a, load(from.row(m).from(at), i), operand));
          });
    else
      block.map_rows(
          from.rows, count, [&](i32 m, auto i) { return Op::value(a, load(from.row(m).from(at), i)); },
          [&](i32 m, auto i, auto y) { put(m, i, y); });
  }

  template <class View, class Index>
  static auto load(View from, Index i) {
    if constexpr (Op::kTakes == 2)
      return from.load_pair(i);
    else
      return from.load(i);
  }
  template <class View, class Index, class Value>
  static void store(View to, Index i, Value y) {
    if constexpr (Op::kGives == 2)
      to.store_pair(i, y.first, y.second);
    else
      to.store(i, y);
  }
};
