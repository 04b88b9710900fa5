// Tile body of rope. Included once per target, inside its namespace.
namespace rope {

#include "heddle/ops/rope/turn_heads.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const Rope& a, const TileCoord& t) {
    turn_heads<false>(block, a, a.q, a.y, t);
  }
};

}  // namespace rope
