// Tile body of router on a GPU: an expert's sum after the other, from memory, because tensor cores round what they multiply.
// Included once per device program, after router.cuh.
namespace router {

struct DeviceBody {
  template <class Block>
  static void run(Block& block, const Router& a, const TileCoord& t) {
    const i32 experts = t[3] - t[2];
    auto sums = block.scratch(experts);
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row);
      block.reduce_rows(sums, experts, a.w.cols(), Sum(),
                        [&](i32 e, auto i) { return x.load(i) * block.weight_row(a.w, t[2] + e).load(i); });
      block.sync();
      auto y = block.row(a.y, row).from(t[2]);
      block.map(experts, [&](auto i) { y.store(i, sums.load(i)); });
      block.sync();
    }
  }
};

}  // namespace router
