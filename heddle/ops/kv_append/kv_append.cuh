// Tile body of kv_append. Included once per target, inside its namespace.
namespace kv_append {

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

  // The record is known from then on: others than all threads together may ask for it.
  template <class Block>
  static void begin_columns(Block& block, const KvAppend& a) {
    block.device(a.state);
  }
  template <class Block, class Columns>
  static void columns(Block& block, const KvAppend& a, i32 row, Columns& columns) {
    const Place at = place_of(block.host(a.step), block.device(a.state), a, row);
    columns.each([&](auto i, auto value) {
      put(block, a.keys, at, columns.at + i.at - a.key_column, value);
      if (a.values.exists()) put(block, a.values, at, columns.at + i.at - a.value_column, value);
    });
  }
  // Element `i` of all heads of a row, if it is one.
  template <class Block>
  static void put(Block& block, const Tensor& pages, Place at, i32 i, float value) {
    const i32 head_dim = pages.last();
    if (i < 0 || i >= pages.size[1] * head_dim) return;
    block.row(pages, at.page, i / head_dim, at.slot).set_here(i % head_dim, value);
  }

  template <class Block>
  static void run(Block& block, const KvAppend& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) append(block, a, row, t[2], t[3], block.row(a.x, row).from(t[2]));
  }
};

}  // namespace kv_append
