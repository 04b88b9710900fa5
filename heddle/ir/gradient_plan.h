// The gradient of an op as a plan over numbered values, and what a call must save for it. Both follow from OpSpec; code
// that differentiates interprets the plan.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/ir/op.h"

namespace heddle {

// One call of a gradient. `field` is an argument of the op that it calls, `of_op` one of the differentiated op.
struct GradientStep {
  struct Read {
    const Field* field = nullptr;
    int value = -1;  // -1: the call leaves it out
    bool transposed = false;
  };
  struct Write {
    const Field* field = nullptr;
    int value = -1;
  };
  struct Shared {
    const Field *field = nullptr, *of_op = nullptr;
  };

  const OpSpec* op = nullptr;
  std::vector<Read> reads;         // its inputs, in the order of fields
  std::vector<Write> writes;       // its outputs but the optional ones
  std::vector<Shared> attributes;  // it takes their values from the differentiated op
  bool copies = false;             // it writes what it reads, so that it may be left out
  std::vector<int> needs;          // values that a call may lack, and then there is no such step
};

struct GradientPlan {
  std::vector<std::string> values;  // the op's tensors, gradients of its outputs, what steps write
  // The op's inputs, then its outputs but the optional ones: the first values.
  std::vector<const Field*> tensors;
  std::vector<GradientStep> steps;

  int find(std::string_view value) const;  // -1: there is none
};

// Throws Error where the gradient names an op that there is not. No steps: the op has no gradient.
GradientPlan gradient_plan(const OpSpec& op);
// The steps that the wanted values need, in order.
std::vector<GradientStep> steps_for(const GradientPlan& plan, std::span<const int> wanted);

// Names what the whole gradient of an op reads of the op's own call. `args` of such a call have the sizes of its outputs.
struct Saved {
  const OpSpec* op = nullptr;
  std::vector<const Field*> inputs, outputs;

  // Memory that is held until the backward; that of the inputs alone is enough where the op makes its outputs again.
  i64 bytes(const std::byte* args) const;
  i64 bytes_of_inputs(const std::byte* args) const;
  // Arithmetic of making the outputs again; 0: none is saved.
  double flops_again(const std::byte* args) const;
};
Saved saved_of(const OpSpec& op);

}  // namespace heddle
