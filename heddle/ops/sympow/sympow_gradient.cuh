// The gradient of the symmetric power, for many rows at a time. Rows are what lanes and threads go over: x and dx lie
// transposed on chip, [K, rows]. Included in the namespaces of the bodies that use it.

template <class View>
struct Turned {
  View data;  // [K, rows]
  i32 rows;

  auto element(i32 k) const { return data.from(k * rows); }
};

// dx += (the group's part of J') dy, where column_of(c) is column c of the group's dy, a view over rows.
template <class Block, class View, class ColumnOf>
inline void add_group(Block& block, const SympowGroup& group, const Turned<View>& x, const Turned<View>& dx,
                      ColumnOf&& column_of) {
  const auto factor = [&](auto m) {
    using Value = decltype(x.element(0).load(m));
    return group.first < 0
               ? Value(group.weight())
               : x.element(group.first).load(m) * x.element(group.second).load(m) * group.weight();
  };
  const auto add = [&](i32 k, auto m, auto value) { dx.element(k).store(m, dx.element(k).load(m) + value); };
  block.map_rows(kSympowTile, x.rows, [&](i32 i, auto m) {
    auto sum = column_of(kSympowTile * i).load(m) * x.element(group.fast).load(m);
    for (i32 j = 1; j < kSympowTile; ++j)
      sum = sum + column_of(kSympowTile * i + j).load(m) * x.element(group.fast + j).load(m);
    add(group.slow + i, m, sum * factor(m));
  });
  block.sync();
  block.map_rows(kSympowTile, x.rows, [&](i32 j, auto m) {
    auto sum = column_of(j).load(m) * x.element(group.slow).load(m);
    for (i32 i = 1; i < kSympowTile; ++i)
      sum = sum + column_of(kSympowTile * i + j).load(m) * x.element(group.slow + i).load(m);
    add(group.fast + j, m, sum * factor(m));
  });
  block.sync();
  if (group.first < 0) return;
  block.map(x.rows, [&](auto m) {
    decltype(column_of(0).load(m)) sum(0.0f);
    for (i32 c = 0; c < kSympowGroup; ++c)
      sum = sum + column_of(c).load(m) * x.element(group.slow + c / kSympowTile).load(m) *
                      x.element(group.fast + c % kSympowTile).load(m);
    sum = sum * group.weight();
    const auto first = x.element(group.first).load(m), second = x.element(group.second).load(m);
    add(group.first, m, sum * second);
    add(group.second, m, sum * first);
  });
  block.sync();
}
