// Tile body of matmul on a GPU: the generic one, inlined, so that a kernel's facts about the arguments reach the product.
// Included once per device program, after matmul.cuh.
namespace matmul {

template <class Config>
struct DeviceBodyWith {
  template <class Block>
  static __forceinline__ void run(Block& block, const Matmul& a, const TileCoord& t) {
    block.inputs();
    auto product = block.fragment(t[0], block.rows(t), t[2], t[3] - t[2]);
    block.mma(product, a.a, a.b);
    block.sync();
    Body::store(block, a, product);
  }
};
using DeviceBody = DeviceBodyWith<DefaultConfig>;

}  // namespace matmul
