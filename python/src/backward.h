// The backward of an op: the plan of its gradient (ir/gradient_plan.h) over arguments of calls from Python.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "heddle/ir/gradient_plan.h"
#include "python/src/call.h"

namespace heddle::python {

// A gradient's dtype and shape.
struct GradientForm {
  DType dtype = DType::kF32;
  std::span<const i64> size;
};

// A backward's arguments, borrowed; null: a call left it out.
struct BackwardValues {
  PyObject* const* saved;  // by Backward::saved
  PyObject* const* grads;  // by result
  Few<PyObject*> attributes;
};

class Backward {
 public:
  explicit Backward(OpEntry& entry);

  // The tensors of a call that it reads: inputs, and results after those, by their places in OpEntry.
  const std::vector<i32>& saved() const { return saved_; }
  bool has_gradient(size_t input) const { return gradients_[input] >= 0; }
  size_t results() const { return grads_.size(); }

  // Gradients by input, as the ops give them, with rows for leading dimensions. Bit i of `needs`: that of input i is
  // wanted. `forms`: by input; none: something looks on that follows no `out`.
  Few<Object> run(u32 needs, const BackwardValues& given, std::span<const GradientForm> forms);

 private:
  struct Read {
    int value = -1;  // -1: left out
    bool transposed = false;
  };
  struct Attribute {
    size_t to, from;
    PyObject* otherwise;  // where the call did not give it
  };
  struct Step {
    OpEntry* entry;
    std::vector<Read> reads;  // by OpEntry::inputs
    std::vector<int> writes;  // by result
    std::vector<Attribute> attributes;
    std::vector<int> needs;   // values without which there is no such step
    bool transposes = false;  // some of what it reads
    int copied = -1;          // the value that it writes too, and nothing else; -1: it computes something
    int vector_of = -1;       // the input whose gradient, a vector, it sums; -1: it makes something else
  };

  const std::vector<Step>& steps_for(u32 needs);
  Step step_of(const GradientStep& step, u32 needs) const;
  Object call(const Step& step, std::span<PyObject* const> values, const BackwardValues& given,
              std::span<const GradientForm> forms) const;

  OpEntry& entry_;
  const GradientPlan plan_;
  std::vector<i32> saved_;
  std::vector<int> saved_values_, grads_, gradients_;  // values: by `saved_`, by result, by input (-1: none)
  std::map<u32, std::vector<Step>> steps_;             // by needs; the interpreter's lock guards it
};

}  // namespace heddle::python
