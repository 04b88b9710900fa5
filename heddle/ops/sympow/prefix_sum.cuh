// Running sums of n elements, in parts of kRun: in each, every element takes the sum of those 1, 2, 4, ... places before it.
// The order of a sum depends on its place alone. Included in the namespaces of the bodies that use it.

// in(n), out(n): the views that begin at element n.
template <class Block, class In, class Out>
inline void prefix_sum(Block& block, i32 n, In&& in, Out&& out) {
  const i32 most = n < kRun ? n : kRun;
  auto sums = block.scratch(most), next = block.scratch(most);
  float before = 0;
  for (i32 begin = 0; begin < n; begin += kRun) {
    const i32 count = n - begin < kRun ? n - begin : kRun;
    auto from = in(begin), to = out(begin);
    block.map(count, [&](auto i) { sums.store(i, from.load(i)); });
    block.sync();
    for (i32 apart = 1; apart < count; apart *= 2) {
      block.map(apart, [&](auto i) { next.store(i, sums.load(i)); });
      block.map(count - apart,
                [&](auto i) { next.from(apart).store(i, sums.from(apart).load(i) + sums.load(i)); });
      block.sync();
      auto swapped = sums;
      sums = next, next = swapped;
    }
    block.map(count, [&](auto i) { to.store(i, sums.load(i) + before); });
    before += sums.get(count - 1);
    block.sync();
  }
}
