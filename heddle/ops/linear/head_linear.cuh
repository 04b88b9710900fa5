// Tile body of head_linear: for each head the tile's columns lie in, its elements -> operand, panels x operand ->
// fragment -> y. Included once per target, inside its namespace.
namespace head_linear {

constexpr i32 kColumns = 256;  // columns of a fragment: they bound scratch

struct Body {
  // Where the columns of head `head` that lie before `end` end.
  static i32 end_of_head(const HeadLinear& a, i32 head, i32 end) {
    const i32 last = (head + 1) * a.head_rows();
    return last < end ? last : end;
  }

  // Panels belong to one head, and so do the items that they travel in.
  template <class Block>
  static void stream(Block& block, const HeadLinear& a, const TileCoord& t) {
    for (i32 n = t[2]; n < t[3];) {
      const i32 end = end_of_head(a, n / a.head_rows(), t[3]);
      const i32 rows = a.w.panel_rows;
      block.panels(a.w, n / rows * a.w.slices(), (end + rows - 1) / rows * a.w.slices());
      n = end;
    }
  }

  static Tensor elements_of(const HeadLinear& a, i32 head) {
    Tensor elements = a.x;
    elements.data += i64(head) * a.w.cols() * size_of(a.x.dtype);
    elements.size[1] = a.w.cols();
    return elements;
  }

  template <class Block>
  static void run(Block& block, const HeadLinear& a, const TileCoord& t) {
    const i32 rows = block.rows(t);
    block.inputs();
    for (i32 n = t[2]; n < t[3];) {
      const i32 head = n / a.head_rows(), end = end_of_head(a, head, t[3]);
      const i32 columns = end - n < kColumns ? end - n : kColumns;
      auto fragment = block.fragment(t[0], rows, n, columns);
      auto x = block.operand(elements_of(a, head), t[0], rows, a.w);
      block.sync();
      block.mma(fragment, x, a.w);
      block.sync();
      block.map_rows(rows, columns, [&](i32 m, auto i) {
        block.row(a.y, t[0] + m).from(n).store(i, fragment.row(m).load(i));
      });
      block.release(fragment);
      n += columns;
    }
  }
};

}  // namespace head_linear
