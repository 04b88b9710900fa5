// A small hand-made program for the tests of executors: layers of linear and rms_norm in alternation. Each
// layer is cut over the workers, and waits for all of the layer before it and for the readers of what it
// overwrites.
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/executor/executor.h"

namespace heddle {

struct TestProgram {
  static constexpr i32 kRows = 21, kCols = 112, kLayers = 6;

  // Its memory lies in `space`, or in the process if that is null.
  explicit TestProgram(i32 workers, MemorySpace* space = nullptr);
  TestProgram(const TestProgram&) = delete;
  TestProgram& operator=(const TestProgram&) = delete;
  ~TestProgram();

  std::vector<float> result() const;  // output of the last layer
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
