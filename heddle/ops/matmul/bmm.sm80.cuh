// Tile body of bmm on a GPU: the generic one, inlined, so that a kernel's facts about the arguments reach the product.
// Included once per device program, after bmm.cuh.
namespace bmm {

template <class Config>
struct DeviceBodyWith {
  template <class Block>
  static __forceinline__ void run(Block& block, const Bmm& a, const TileCoord& t) {
    block.inputs();
    const BmmTile tile(a, t[0]);
    auto product = block.fragment(tile.begin, tile.end - tile.begin, t[1], t[2] - t[1]);
    block.mma(product, a.a.at(tile.batch), a.b.at(tile.batch));
    block.sync();
    Body::store(block, a, tile, product);
  }
};
using DeviceBody = DeviceBodyWith<DefaultConfig>;

}  // namespace bmm
