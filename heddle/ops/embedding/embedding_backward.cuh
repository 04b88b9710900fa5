// Tile body of embedding_backward. Included once per target, inside its namespace.
namespace embedding_backward {

struct Body {
  template <class Block>
  static void run(Block& block, const EmbeddingBackward& a, const TileCoord& t) {
    block.inputs();
    const StepDevice& device = block.device(a.state);
    const i32* asked = a.by_position ? device.position() : device.token();
    // The rows of dy that took a row of this tile lie in [first, last): in most tiles there are none.
    i32 first = a.dy.size[0], last = 0;
    for (i32 row = 0; row < a.dy.size[0]; ++row) {
      if (asked[row] < t[0] || asked[row] >= t[1]) continue;
      if (last == 0) first = row;
      last = row + 1;
    }
    for (i32 v = t[0]; v < t[1]; ++v) {
      auto dtable = block.row(a.dtable, v).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) {
        auto sum = block.index(i) * 0.0f;
        for (i32 row = first; row < last; ++row) {
          if (asked[row] != v) continue;
          sum = sum + block.row(a.dy, row).from(t[2]).load(i);
          if (a.dcopy.exists()) sum = sum + block.row(a.dcopy, row).from(t[2]).load(i);
        }
        dtable.store(i, sum * a.scale);
      });
    }
  }
};

}  // namespace embedding_backward
