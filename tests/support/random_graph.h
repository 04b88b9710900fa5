// Random small graphs of real ops, with state that carries over from step to step, laid out for random
// workers. For tests of properties that every program has.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "heddle/engine/compile.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {

class RandomGraph {
 public:
  explicit RandomGraph(u64 seed);

  const Topology& topology() const { return placement_.topology; }
  Program program(const std::string& scheduler) const;
  // The state and the outputs after some steps of the reference executor. The seed gives the inputs.
  std::vector<std::byte> result(const Program& program, int steps, const ExecutorOptions& options) const;

 private:
  u32 pick(u32 n) { return u32(random_() % n); }
  Tensor& any() { return made_[pick(u32(made_.size()))]; }
  Tensor add_vector(const std::string& name);
  Weight add_weight(const std::string& name);
  Tensor add_linear(const std::string& name, const Tensor& x);
  void add_residual();
  void add_call(u32 index);

  u64 seed_;
  std::mt19937_64 random_;
  i32 rows_, cols_, panel_rows_;
  Graph graph_;
  std::vector<Tensor> made_;
  Tensor residual_;
  std::vector<Weight> weights_;
  CompileOptions options_;
  Placement placement_;
};

}  // namespace heddle
