// The planner: everything that decides a model's programs, and none of its weights.
#pragma once

#include <memory>
#include <span>

#include "heddle/engine/compile.h"
#include "heddle/engine/model.h"
#include "heddle/engine/target.h"

namespace heddle {

// Rows of a step: a program is made for each class of up to `most_rows`, and serves every step that fits it.
std::span<const i32> row_classes(i32 most_rows);
// The smallest of these that holds the step; throws when none does.
i32 row_class(std::span<const i32> classes, i32 rows, i32 sequences);

class Planner {
 public:
  // Places the weights; programs of all row classes keep to that.
  Planner(std::shared_ptr<const Model> model, Target target, Capacity capacity, CompileOptions options);

  const Model& model() const { return *model_; }
  const Capacity& capacity() const { return capacity_; }
  const Placement& placement() const { return placement_; }
  // Those of the target. Where logits of every row are wanted, steps stay small enough for these.
  std::span<const i32> row_classes() const;
  i32 row_class(i32 rows, i32 sequences) const { return heddle::row_class(row_classes(), rows, sequences); }

  ModelGraph graph(i32 rows, i32 sequences) const;
  // The graph after its passes, and what they fused.
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
