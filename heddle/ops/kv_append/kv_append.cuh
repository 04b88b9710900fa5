// Tile body of kv_append. Included once per target, inside its namespace.
namespace kv_append {

// An epilogue that changes nothing and has stores of its own: whole heads of a row.
struct Body {
  // Where a row's keys and values go.
  struct Place {
    i32 page, slot;
  };

  static Place place_of(const StepHost& host, const StepDevice& device, const KvAppend& a, i32 row) {
    const i32 position = device.position()[row], page_size = a.keys.size[2];
    return {host.pages(host.row_sequence()[row])[position / page_size], position % page_size};
  }

  // Copies what lies in the columns [begin, end) of a row and in [first, first + all heads) into the pages.
  // `in` begins at column `begin`.
  template <class Block, class View>
  static void copy_heads(Block& block, const Tensor& pages, i32 first, Place at, i32 begin, i32 end,
                         View in) {
    const i32 head_dim = pages.last(), last = first + pages.size[1] * head_dim;
    const i32 stop = end < last ? end : last;
    for (i32 n = begin > first ? begin : first; n < stop;) {
      const i32 head = (n - first) / head_dim, inside = (n - first) % head_dim;
      const i32 width = head_dim - inside < stop - n ? head_dim - inside : stop - n;
      auto from = in.from(n - begin), to = block.row(pages, at.page, head, at.slot).from(inside);
      block.map(width, [&](auto i) { to.store(i, from.load(i)); });
      n += width;
    }
  }

  template <class Block, class View>
  static void append(Block& block, const KvAppend& a, i32 row, i32 begin, i32 end, View in) {
    const Place at = place_of(block.host(a.step), block.device(a.state), a, row);
    copy_heads(block, a.keys, a.key_column, at, begin, end, in);
    if (a.values.exists()) copy_heads(block, a.values, a.value_column, at, begin, end, in);
  }

  template <class Block, class Fragment>
  static void epilogue(Block& block, const KvAppend& a, Fragment& fragment) {
    for (i32 m = 0; m < fragment.rows; ++m)
      append(block, a, fragment.m0 + m, fragment.n0, fragment.n0 + fragment.cols, fragment.row(m));
    block.sync();
  }

  template <class Block>
  static void run(Block& block, const KvAppend& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) append(block, a, row, t[2], t[3], block.row(a.x, row).from(t[2]));
  }
};

}  // namespace kv_append
