// Tile body of expert_bias. Included once per target, inside its namespace.
namespace expert_bias {

struct Body {
  template <class Block>
  static void run(Block& block, const ExpertBias& a, const TileCoord& t) {
    block.inputs();
    const i32 taken = a.choice.last(), live = block.host(a.step).rows;
    const i32 end = (t[1] < live ? t[1] : live) * taken;
    const i32* choice = block.ints(a.choice);
    for (i32 entry = t[0] * taken; entry < end; ++entry) {
      auto x = block.row(a.x, entry).from(t[2]), y = block.row(a.y, entry).from(t[2]);
      auto bias = block.row(a.bias).from(choice[entry] * a.x.last() + t[2]);
      block.map(t[3] - t[2], [&](auto i) { y.store(i, x.load(i) + bias.load(i)); });
    }
  }
};

}  // namespace expert_bias
