// Tile body of embedding. Included once per target, inside its namespace.
namespace embedding {

struct Body {
  template <class Block>
  static void run(Block& block, const Embedding& a, const TileCoord& t) {
    block.inputs();
    const StepDevice& device = block.device(a.state);
    for (i32 row = t[0]; row < t[1]; ++row) {
      const i32 at = a.by_position ? device.position()[row] : device.token()[row];
      auto out = block.row(a.y, row), copy = a.copy.exists() ? block.row(a.copy, row) : out;
      auto store = [&](auto i, auto value) {
        copy.store(i, value);
        out.store(i, value);
      };
      if (at >= 0 && at < a.table.rows()) {
        auto in = block.weight_row(a.table, at);
        block.map(
            a.table.cols(), [&](auto i) { return in.load(i) * a.scale; }, store);
      } else {  // the host refuses such a token; should one arrive, nothing outside is read and NaN shows it
        block.map(a.table.cols(), [&](auto i) { store(i, block.index(i) * kNaN); });
      }
    }
  }
};

}  // namespace embedding
