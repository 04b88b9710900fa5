// Tile body of matmul. Included once per target, inside its namespace.
namespace matmul {

// Sizes of a tile. Only the tiling needs them: a body takes the tile that it gets.
struct DefaultConfig {
  static constexpr i32 kRows = 64, kColumns = 64;
};

template <class Config>
struct BodyWith {
  template <class Block>
  static void run(Block& block, const Matmul& a, const TileCoord& t) {
    block.inputs();
    auto product = block.fragment(t[0], block.rows(t), t[2], t[3] - t[2]);
    block.mma(product, a.a, a.b);
    block.sync();
    store(block, a, product);
  }

  template <class Block, class Fragment>
  static void store(Block& block, const Matmul& a, const Fragment& product) {
    block.map_rows(
        product.rows, product.cols, [&](i32 m, auto i) { return product.row(m).load(i); },
        [&](i32 m, auto i, auto value) { block.row(a.y, product.m0 + m).from(product.n0).store(i, value); });
  }
};
using Body = BodyWith<DefaultConfig>;

}  // namespace matmul
