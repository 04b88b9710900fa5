// The append on a GPU from sm_80 on: it stores many rows together and computes their places once. One row goes as in kv_append.cuh.
// Included once per device program, after kv_append.cuh.
namespace kv_append {

struct DeviceBody : Body {
  // Stores the elements that lie both in the columns of a fragment and in [first, first + all heads) into the pages.
  template <class Block, class Fragment>
  static void copy_rows(Block& block, const Tensor& pages, i32 first, const Place* places,
                        const Fragment& fragment) {
    const i32 head_dim = pages.last(), last = first + pages.size[1] * head_dim;
    const i32 end = fragment.n0 + fragment.cols, stop = end < last ? end : last;
    for (i32 n = fragment.n0 > first ? fragment.n0 : first; n < stop;) {
      const i32 head = (n - first) / head_dim, inside = (n - first) % head_dim;
      const i32 width = head_dim - inside < stop - n ? head_dim - inside : stop - n;
      block.map_rows(
          fragment.rows, width, [&](i32 m, auto i) { return fragment.row(m).from(n - fragment.n0).load(i); },
          [&](i32 m, auto i, float value) {
            block.row(pages, places[m].page, head, places[m].slot).from(inside).store(i, value);
          });
      n += width;
    }
  }

  template <class Block, class Fragment>
  static void epilogue(Block& block, const KvAppend& a, Fragment& fragment) {
    if (fragment.rows == 1) return Body::epilogue(block, a, fragment);
    const StepHost& host = block.host(a.step);
    const StepDevice& device = block.device(a.state);
    auto* places = reinterpret_cast<Place*>(block.scratch(2 * fragment.rows).data);
    for (i32 m = Team::thread(); m < fragment.rows; m += Team::size())
      places[m] = place_of(host, device, a, fragment.m0 + m);
    block.sync();
    copy_rows(block, a.keys, a.key_column, places, fragment);
    if (a.values.exists()) copy_rows(block, a.values, a.value_column, places, fragment);
    block.sync();
  }

  // The record is known from then on: a thread may ask for it by itself.
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
  template <class Block>
  static Place place(Block& block, const KvAppend& a, i32 row) {
    return place_of(block.host(a.step), block.device(a.state), a, row);
  }
  // Two columns that lie in the same head, if they are keys or values.
  template <class Block, class Columns>
  static void columns_at(Block& block, const KvAppend& a, Place at, Columns& columns) {
    const bool keys = is_of(a.keys, columns.at - a.key_column);
    if (!keys && !(a.values.exists() && is_of(a.values, columns.at - a.value_column))) return;
    Tensor pages = a.values;
    if (keys) pages = a.keys;
    const i32 i = columns.at - (keys ? a.key_column : a.value_column), head_dim = pages.last();
    if (i % 2 != 0 || head_dim % 2 != 0 || columns.count != 2)
      return columns.each([&](auto n, auto value) { put(block, pages, at, i + n.at, value); });
    store_two(block.row(pages, at.page, i / head_dim, at.slot).from(i % head_dim), columns.value[0],
              columns.value[1]);
  }
  static bool is_of(const Tensor& pages, i32 i) { return i >= 0 && i < pages.size[1] * pages.last(); }
  // Element `i` of all heads of a row, if it is one.
  template <class Block>
  static void put(Block& block, const Tensor& pages, Place at, i32 i, float value) {
    const i32 head_dim = pages.last();
    if (i < 0 || i >= pages.size[1] * head_dim) return;
    block.row(pages, at.page, i / head_dim, at.slot).set_here(i % head_dim, value);
  }
};

}  // namespace kv_append
