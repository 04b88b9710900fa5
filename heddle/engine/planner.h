// The planner: everything that decides a model's programs, without its weights.
#pragma once

#include <memory>
#include <span>

#include "heddle/engine/compile.h"
#include "heddle/engine/model.h"
#include "heddle/engine/target.h"

namespace heddle {

// Classes of steps by rows. A program is made for each class up to `most_rows`, and serves every step that
// fits it.
std::span<const i32> row_classes(i32 most_rows);
// The smallest class that holds the step. Throws when none does.
i32 row_class(std::span<const i32> classes, i32 rows, i32 sequences);

class Planner {
 public:
  // Places the weights once; programs of all row classes use that placement.
  Planner(std::shared_ptr<const Model> model, Target target, Capacity capacity, CompileOptions options);

  const Model& model() const { return *model_; }
  const Capacity& capacity() const { return capacity_; }
  const Placement& placement() const { return placement_; }
  // The target's row classes. If logits of every row are wanted, only small classes, because these take
  // memory.
  std::span<const i32> row_classes() const;
  i32 row_class(i32 rows, i32 sequences) const { return heddle::row_class(row_classes(), rows, sequences); }

  ModelGraph graph(i32 rows, i32 sequences) const;
  // The graph after its passes; `log` gets what they fused.
  Graph fused(i32 rows, i32 sequences, std::vector<std::string>* log = nullptr) const;
  Program program(i32 rows, i32 sequences) const;  // not checked yet

 private:
  GraphRequest request(i32 rows, i32 sequences) const;

  std::shared_ptr<const Model> model_;
  Target target_;
  Capacity capacity_;
  CompileOptions options_;
  Placement placement_;
};

}  // namespace heddle
