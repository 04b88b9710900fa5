// Tiles over one kind of block.
#pragma once

#include "heddle/backend/cpu/scratch.h"
#include "heddle/backend/cpu/simd.h"
#include "heddle/backend/cpu/tile_runner.h"

namespace heddle {

template <class Block>
class TilesOf : public Tiles {
 public:
  TilesOf(const Program& program, const Memory& memory, std::span<const BodyEntry<Block>> bodies,
          const MatrixKernels& kernels, int threads)
      : runner_(program, memory, bodies) {
    for (int t = 0; t < threads; ++t) blocks_.push_back(std::make_unique<Block>(kernels));
  }
  bool run(int thread, u32 call, const TileCoord& tile) override {
    Block& block = *blocks_[size_t(thread)];
    block.begin();
    runner_.run(block, call, tile);
    return !block.was_dead();
  }

 private:
  TileRunner<Block> runner_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

template <class Block>
class OpTilesOf : public OpTiles {
 public:
  OpTilesOf(std::span<const BodyEntry<Block>> bodies, const MatrixKernels& kernels)
      : bodies_(bodies), kernels_(kernels) {}
  const void* body_of(std::string_view op) const override { return find_body(bodies_, op); }
  void run(const void* body, const std::byte* args, const TileCoord& tile) const override {
    static thread_local Block block(kernels_);
    const typename Chain<Block>::Link link{static_cast<const BodyEntry<Block>*>(body), args};
    Chain<Block> chain{std::span(&link, 1)};
    block.begin();
    chain.run(block, tile);
  }

 private:
  std::span<const BodyEntry<Block>> bodies_;
  const MatrixKernels kernels_;
};

}  // namespace heddle
