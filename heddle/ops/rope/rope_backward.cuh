// Tile body of rope_backward. Included once per target, inside its namespace.
namespace rope_backward {

#include "heddle/ops/rope/turn_heads.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const RopeBackward& a, const TileCoord& t) {
    turn_heads<true>(block, a, a.dy, a.dq, t);
  }
};

}  // namespace rope_backward
