// A small program for the tests of executors, made by hand: layers of linear and rms_norm in turn, each cut
// over the workers, each waiting for all of the layer before it and for the readers of what it overwrites.
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/executor.h"

namespace heddle {

struct TestProgram {
  static constexpr i32 kRows = 21, kCols = 112, kLayers = 6;

  explicit TestProgram(i32 workers);

  // What the last layer left.
  std::vector<float> result() const {
    const auto* y = reinterpret_cast<const float*>(memory.base[kLayers]);
    return {y, y + kRows * kCols};
  }
  // The instruction of a layer on a worker.
  Instruction& at(size_t worker, size_t layer) { return program.workers[worker][layer]; }

  Program program;
  Memory memory;

 private:
  u32 add_buffer(const std::string& name, BufferKind kind, i64 bytes);
  void add_layer(i32 layer);

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<std::vector<Line>> store_;
  std::vector<u64> panels_;
};

}  // namespace heddle
