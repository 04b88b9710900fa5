// A small program for the tests of executors, made by hand: layers of linear and rms_norm in turn, each cut
// over the workers, each waiting for all of the layer before it and for the readers of what it overwrites.
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/executor.h"

namespace heddle {

struct TestProgram {
  static constexpr i32 kRows = 21, kCols = 112, kLayers = 6;

  // Its memory lies in `space`, or with the process.
  explicit TestProgram(i32 workers, MemorySpace* space = nullptr);
  TestProgram(const TestProgram&) = delete;
  TestProgram& operator=(const TestProgram&) = delete;
  ~TestProgram();

  std::vector<float> result() const;  // what the last layer left
  // The instruction of a layer on a worker.
  Instruction& at(size_t worker, size_t layer) { return program.workers[worker][layer]; }

  Program program;
  Memory memory;

 private:
  u32 add_buffer(const std::string& name, BufferKind kind, i64 bytes);
  void add_layer(i32 layer);
  void move_to_space();

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<std::vector<Line>> store_;
  std::vector<u64> panels_;
  MemorySpace* space_;
  std::vector<std::byte*> in_space_;
};

}  // namespace heddle
