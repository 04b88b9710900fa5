// A product of one row on a GPU from sm_80 on: its columns go through the epilogues in registers before they are stored. It tests
// for its panels before it waits for its inputs.
// Included once per device program, after linear.cuh, whose body takes what does not fit here.
namespace linear {

template <class Config>
struct DeviceBodyWith : BodyWith<Config> {
  template <class Block, class Chain>
  __forceinline__ static void run(Block& block, const Linear& a, const TileCoord& t, Chain& chain) {
    // Each way is compiled only where a call may take it: the compiler is slow to find that nothing takes one.
    if constexpr (!Chain::template kTakesColumns<Block>)
      BodyWith<Config>::run(block, a, t, chain);
    else if constexpr (Kernel::kDrawsOneRow)
      run_columns(block, a, t, chain);
    else if (block.rows(t) == 1 && block.draws(a.w))
      run_columns(block, a, t, chain);
    else
      BodyWith<Config>::run(block, a, t, chain);
  }

 private:
  template <class Block, class Chain>
  __forceinline__ static void run_columns(Block& block, const Linear& a, const TileCoord& t, Chain& chain) {
    const auto x =
        chain.has_prologue() ? block.operand(1, a.w.cols(), a.w) : block.operand_place(a.x, t[0], 1, a.w);
    auto drawn = block.draw(a.w, t[2], t[3]);
    block.inputs();
    if constexpr (Chain::has_prologue())
      chain.prologue(block, t[0], x.row(0));
    else
      block.copy_rows(a.x, t[0], x);
    chain.begin_columns(block);
    block.sync();
    block.mma(
        drawn, x, a.w, t[2], t[3], [&](const auto& columns) { return chain.ask(block, t[0], columns); },
        [&](auto columns, const auto& ahead) {
          chain.columns(block, t[0], columns, ahead);
          store_columns(block.row(a.y, t[0]), columns);
        });
  }
};
using DeviceBody = DeviceBodyWith<DefaultConfig>;

}  // namespace linear
