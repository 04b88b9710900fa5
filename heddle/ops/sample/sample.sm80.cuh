// Sample on a GPU from sm_80 on: from what sample_parts made of slices of the scores, or in passes over them all.
// Included once per device program, behind sample.cuh.
#include "heddle/ops/sample/sample_passes.sm80.cuh"
#include "heddle/ops/sample/sample_slices.sm80.cuh"

namespace sample {

struct DeviceBody {
  template <class Block>
  static void run(Block& block, const Sample& a, const TileCoord& t) {
    if (a.best.exists() && a.best.size[1] <= Slices::kMost)
      Body::run_with<Slices>(block, a, t);
    else
      Body::run_with<Passes>(block, a, t);
  }
};

}  // namespace sample
