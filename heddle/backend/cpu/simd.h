// SIMD levels are the targets of Highway that this CPU can run and, above the best of them, its matrix instructions.
// The bits of a result depend on the level, but not on the number of threads and workers.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "heddle/backend/cpu/arch/matrix.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {

struct SimdLevel {
  const char* name;
  long long target;  // Highway's bit for it
  MatrixKernels kernels;
};

// Returns the levels that this CPU can run, best first.
std::span<const SimdLevel> simd_levels();
// Returns the level of this name; empty: the best. Throws Error if this CPU has no such level.
const SimdLevel& simd_level(std::string_view name);

// Runs tiles of a program; each thread has scratch of its own.
class Tiles {
 public:
  virtual ~Tiles() = default;
  // Returns false if the tile had no work in this step.
  virtual bool run(int thread, u32 call, const TileCoord& tile) = 0;
};
std::unique_ptr<Tiles> create_tiles(const SimdLevel& level, const Program& program, const Memory& memory,
                                    int threads);

// Runs tiles of ops by themselves, at the best level. A thread keeps the scratch of the tiles that it ran.
class OpTiles {
 public:
  virtual ~OpTiles() = default;
  virtual const void* body_of(std::string_view op) const = 0;  // null: there is none in this build
  virtual void run(const void* body, const std::byte* args, const TileCoord& tile) const = 0;
};
const OpTiles& op_tiles();

}  // namespace heddle
