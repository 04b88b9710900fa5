// Tile body of expert_linear: entries of a slot -> operand, panels of its expert x operand -> fragment, epilogues -> y.
// Included once per target, inside its namespace.
namespace expert_linear {

constexpr i32 kColumns = 256;  // columns of a fragment

struct Body {
  // The expert of a slot, -1 where another slot stands for it, and the live entries.
  struct Slot {
    const i32* choice;
    i32 entries, expert;

    bool takes(i32 entry) const { return choice[entry] == expert; }
  };

  template <class Block>
  static Slot slot_of(Block& block, const ExpertLinear& a, i32 slot) {
    const i32* choice = block.ints(a.choice);
    const i32 entries = block.host(a.step).rows * a.choice.last();
    if (a.slots() == a.w.matrices) return {choice, entries, slot};
    i32 expert = slot < entries ? choice[slot] : -1;
    for (i32 before = 0; before < slot && expert >= 0; ++before)
      if (choice[before] == expert) expert = -1;
    return {choice, entries, expert};
  }

  template <class Block>
  static void stream(Block& block, const ExpertLinear& a, const TileCoord& t) {
    const Slot slot = slot_of(block, a, t[0] / a.slot_rows());
    i32 entry = 0;
    while (entry < slot.entries && !slot.takes(entry)) ++entry;
    if (entry >= slot.entries) return;
    const i32 first = slot.expert * a.w.panels(), rows = a.w.panel_rows;
    block.panels(a.w, first + t[2] / rows * a.w.slices(), first + (t[3] + rows - 1) / rows * a.w.slices());
  }

  template <class Block, class Chain>
  static void run(Block& block, const ExpertLinear& a, const TileCoord& t, Chain& chain) {
    block.inputs();
    const Slot slot = slot_of(block, a, t[0] / a.slot_rows());
    auto found = block.scratch(slot.entries);
    const i32 count = block.select(slot.entries, found, [&](i32 entry) { return slot.takes(entry); });
    if (count == 0) return block.dead();
    auto x = block.operand(count < a.slot_rows() ? count : a.slot_rows(), a.w.cols(), a.w);
    const i32 most = x.rows;
    for (i32 first = 0; first < count; first += most) {
      x.rows = count - first < most ? count - first : most;
      run_rows(block, a, t, chain, slot.expert, x, found.from(first));
    }
  }

  // The rows of x: as many entries of one expert.
  template <class Block, class Chain, class Operand, class View>
  static void run_rows(Block& block, const ExpertLinear& a, const TileCoord& t, Chain& chain, i32 expert,
                       Operand& x, View entries) {
    block.sync();
    for (i32 m = 0; m < x.rows; ++m) {
      auto in = block.row(a.x, entries.get_int(m) / a.entries_per_row());
      auto out = x.row(m);
      block.map(a.w.cols(), [&](auto i) { out.store(i, in.load(i)); });
    }
    block.sync();
    for (i32 n = t[2]; n < t[3]; n += kColumns) {
      auto fragment = block.fragment(0, x.rows, n, (t[3] - n < kColumns ? t[3] - n : kColumns));
      const auto first = fragment;  // an epilogue may put another in its place, made after it
      block.mma(fragment, x, a.w, expert);
      block.sync();
      chain.epilogues(block, fragment);
      block.map_rows(fragment.rows, fragment.cols, [&](i32 m, auto i) {
        block.row(a.y, entries.get_int(m)).from(fragment.n0).store(i, fragment.row(m).load(i));
      });
      block.release(first);
    }
  }
};

}  // namespace expert_linear
