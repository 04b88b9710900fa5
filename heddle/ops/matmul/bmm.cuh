// Tile body of bmm: rows and columns of one product. Included once per target, inside its namespace.
namespace bmm {

// Columns of a tile. Only the tiling needs them: a body takes the tile that it gets.
struct DefaultConfig {
  static constexpr i32 kColumns = 64;
};

template <class Config>
struct BodyWith {
  template <class Block>
  static void run(Block& block, const Bmm& a, const TileCoord& t) {
    block.inputs();
    const BmmTile tile(a, t[0]);
    auto product = block.fragment(tile.begin, tile.end - tile.begin, t[1], t[2] - t[1]);
    block.mma(product, a.a.at(tile.batch), a.b.at(tile.batch));
    block.sync();
    store(block, a, tile, product);
  }

  template <class Block, class Fragment>
  static void store(Block& block, const Bmm& a, const BmmTile& tile, const Fragment& product) {
    block.map_rows(
        product.rows, product.cols, [&](i32 m, auto i) { return product.row(m).load(i); },
        [&](i32 m, auto i, auto value) {
          block.row(a.y, tile.batch, tile.begin + m).from(product.n0).store(i, value);
        });
  }
};
using Body = BodyWith<DefaultConfig>;

}  // namespace bmm
