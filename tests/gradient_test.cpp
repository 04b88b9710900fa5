// Tests the gradients that ops name: their calls fit the ops that they call, and their fp64 references are
// the derivatives of the differentiated op's reference, by central differences. A new gradient needs no new
// test.
#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/ir/op.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/shape.h"

namespace heddle {
namespace {

// An argument of a call.
struct Argument {
  std::string name, dims;
  bool writes, optional;
  Tensor* tensor;    // elements, if it is a weight
  bool* transposed;  // null: it is no matrix
};

// "dy^T" -> dy
std::string without_transposition(std::string_view value) {
  return std::string(value.ends_with("^T") ? value.substr(0, value.size() - 2) : value);
}

// The arguments of an op in memory.
struct Call {
  const OpSpec& op;
  std::vector<std::byte> args;
  std::vector<Argument> arguments;

  Call(const OpSpec& of, std::vector<std::byte> bytes) : op(of), args(std::move(bytes)) {
    for (const Field& field : op.fields)
      if (!field.is_attribute())
        arguments.push_back(
            {field.name, field.dims_text, field.writes(), field.optional, &field.elements(args.data()),
             field.is_matrix() ? reinterpret_cast<bool*>(args.data() + field.transposed_at) : nullptr});
  }
  explicit Call(const OpSpec& of) : Call(of, of.defaults) {}
  Call(const OpSpec& of, const Case& test) : Call(of, test.args) {}
};

// Unrounded values: a vector for each buffer. Tensors are whole buffers.
class ExactValues : public Values {
 public:
  std::vector<double> read(const Tensor& tensor) const override { return values_.at(tensor.buffer); }
  std::vector<double> read(const Weight& weight) const override { return values_.at(weight.data.buffer); }
  void write(const Tensor& tensor, std::span<const double> values) override {
    values_[tensor.buffer].assign(values.begin(), values.end());
  }
  std::byte* bytes(u32 buffer) override { return bytes_.at(buffer).data(); }

  void add(Tensor& tensor, std::vector<double> values) {
    tensor.buffer = u32(values_.size());
    if (tensor.dtype == DType::kU8) bytes_[tensor.buffer].resize(values.size());
    values_.push_back(std::move(values));
  }
  std::vector<double>& of(const Tensor& tensor) { return values_[tensor.buffer]; }

 private:
  std::vector<std::vector<double>> values_;
  std::map<u32, std::vector<std::byte>> bytes_;  // buffers of step records
};

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (b[i] != 0) sum += a[i] * b[i];
  return sum;
}

// The values, with 0 for some.
std::vector<double> without(bool (*is_left_out)(double), std::vector<double> values) {
  std::ranges::replace_if(values, is_left_out, 0.0);
  return values;
}
// The lse of a query without keys is, and does not move.
bool is_infinite(double value) {
  return std::isinf(value);
}
bool is_nan(double value) {
  return std::isnan(value);
}

// A case of an op and its gradient in fp64. L = sum of y * dy over the outputs; dy is 0 where y is NaN on purpose.
class Gradient {
 public:
  Gradient(const OpSpec& op, const Case& test) : forward_(op, test) {
    op.infer(forward_.args.data());
    for (const Argument& a : forward_.arguments)
      if (a.tensor->rank > 0) values_.add(*a.tensor, random(a.tensor)), named_[a.name] = a.tensor;
    if (test.prepare) test.prepare(forward_.args.data(), values_);
    op.reference(forward_.args.data(), values_);
    for (const Argument& a : forward_.arguments)
      if (a.writes && a.tensor->rank > 0) give(a);
    for (const GradientCall& call : op.gradient)
      if (is_wanted(call)) run(call);
  }

  // The inputs that have a gradient.
  std::vector<std::string> inputs() const {
    std::vector<std::string> names;
    for (const Argument& a : forward_.arguments)
      if (!a.writes && named_.contains(a.name) && named_.contains("d" + a.name)) names.push_back(a.name);
    return names;
  }
  const Tensor& at(const std::string& name) const { return *named_.at(name); }

  // The error of an input's gradient along a random direction, relative to the sum of absolute terms. `sign`
  // multiplies the gradient.
  double error(const std::string& input, double sign = 1) {
    const Tensor &x = at(input), &dx = at("d" + input);
    const std::vector<double> before = values_.of(x), direction = random(&x);
    const double step = 1e-6;
    const auto moved = [&](double by) {
      std::vector<double>& now = values_.of(x);
      for (size_t i = 0; i < now.size(); ++i) now[i] = before[i] + by * direction[i];
      forward_.op.reference(forward_.args.data(), values_);
      double loss = 0;
      for (const Argument& a : forward_.arguments)
        if (a.writes && a.tensor->rank > 0)
          loss += dot(without(is_infinite, values_.of(*a.tensor)), values_.of(at("d" + a.name)));
      return loss;
    };
    const double up = moved(step), down = moved(-step), found = (up - down) / (2 * step);
    values_.of(x) = before;
    const std::vector<double> gradient = has_nan_ ? without(is_nan, values_.of(dx)) : values_.of(dx);
    const double told = sign * dot(gradient, direction), size = std::sqrt(dot(gradient, gradient));
    return std::abs(found - told) / (1 + size);
  }

 private:
  std::vector<double> random(const Tensor* like) {
    std::vector<double> values(size_t(elements(*like)));
    for (double& v : values) v = double(random_() >> 11) * 0x1p-52 - 1;
    return values;
  }
  // Adds a tensor with another argument's shape, under a new name and in a buffer of its own.
  void give(const Argument& like) {
    Tensor& tensor = own(*like.tensor);
    const std::vector<double> y = values_.of(*like.tensor);
    std::vector<double> dy = random(&tensor);
    for (size_t i = 0; i < y.size(); ++i)
      if (std::isnan(y[i])) dy[i] = 0, has_nan_ = true;
    values_.add(tensor, std::move(dy));
    named_["d" + like.name] = &tensor;
  }
  Tensor& own(const Tensor& tensor) { return tensors_.emplace_back(tensor); }

  // False for a call that writes only gradients of arguments that the case leaves out.
  bool is_wanted(const GradientCall& step) const {
    const Call call(get_op(step.op));
    return std::ranges::any_of(call.arguments, [&](const Argument& a) {
      const std::string value(step.value_of(a.name));
      const Field* const of = find_field(forward_.op.fields, value.substr(1));
      return a.writes && !(value.starts_with('d') && of && !named_.contains(of->name));
    });
  }

  void run(const GradientCall& step) {
    Call call(get_op(step.op));
    for (const Field& field : call.op.fields)
      if (const Field* same = find_field(forward_.op.fields, field.name); same && field.is_attribute())
        set_attribute(step.op, field, call.args.data(), get_attribute(*same, forward_.args.data()));
    for (const Argument& a : call.arguments)
      if (!a.writes && named_.contains(without_transposition(step.value_of(a.name))))
        take(a, step.value_of(a.name));
    if (lacks_an_input(call)) return;  // it writes the gradient of an argument that this case leaves out
    call.op.infer(call.args.data());
    for (const Argument& a : call.arguments)
      if (a.writes) {
        values_.add(*a.tensor, std::vector<double>(size_t(elements(*a.tensor))));
        named_[std::string(step.value_of(a.name))] = &own(*a.tensor);
      }
    call.op.reference(call.args.data(), values_);
  }

  static bool lacks_an_input(const Call& call) {
    return std::ranges::any_of(call.op.fields, [&](const Field& field) {
      return !field.is_attribute() && !field.writes() && !field.optional &&
             field.elements(call.args.data()).rank == 0;
    });
  }

  void take(const Argument& a, std::string_view value) {
    *a.tensor = at(without_transposition(value));
    if (a.transposed) *a.transposed = value.ends_with("^T");
  }

  std::mt19937_64 random_{11};
  bool has_nan_ = false;  // in an output, and so in gradients
  Call forward_;
  ExactValues values_;
  std::list<Tensor> tensors_;
  std::map<std::string, const Tensor*> named_;
};

// The cases of an op whose matrices lie in rows of floats: a gradient is a function of values, not of how they lie.
std::vector<Case> cases_of(const OpSpec& op) {
  std::vector<Case> cases = op.cases();
  std::erase_if(cases, [&](Case& test) {
    return std::ranges::any_of(Call(op, test).arguments, [](const Argument& a) {
      return a.transposed && (*a.transposed || !is_wide_float(a.tensor->dtype));
    });
  });
  return cases;
}

std::vector<const OpSpec*> differentiable() {
  std::vector<const OpSpec*> ops;
  for (const OpSpec* op : all_ops())
    if (!op->gradient.empty()) ops.push_back(op);
  return ops;
}

class Gradients : public testing::TestWithParam<const OpSpec*> {};

// "M, 2N" -> {M, 2N}
std::vector<std::string> split(const std::string& dims) {
  std::vector<std::string> parts;
  std::istringstream text(dims);
  for (std::string part; std::getline(text >> std::ws, part, ',');) parts.push_back(part);
  return parts;
}

// Finds what is wrong with the calls of a gradient, by names and dimensions alone.
class Misfits {
 public:
  explicit Misfits(const OpSpec& op) {
    for (const Argument& a : Call(op).arguments) {
      known_[a.name] = split(a.dims);
      (a.writes ? known_ : wanted_)["d" + a.name] = split(a.dims);
    }
    for (const GradientCall& step : op.gradient) look_at(step);
    for (const std::string& value : unread_) wrong.push_back(value + " is written and not read");
  }

  std::vector<std::string> wrong;

 private:
  using Dims = std::vector<std::string>;

  void look_at(const GradientCall& step) {
    const OpSpec* called = find_op(step.op);
    if (!called) return wrong.push_back(fmt::format("{} is no op", step.op));
    const std::vector<Argument> arguments = Call(*called).arguments;
    for (const auto& [argument, value] : step.values)
      if (std::ranges::none_of(arguments, [&](const Argument& a) { return a.name == argument; }))
        wrong.push_back(fmt::format("{} has no argument {}", step.op, argument));
    // dimension of the called op -> dimension of the differentiated one
    std::map<std::string, std::string> names;
    for (const Argument& a : arguments)
      if (!a.writes) read(step, a, names);
    for (const Argument& a : arguments)
      if (a.writes) write(step, a, names);
  }
  void read(const GradientCall& step, const Argument& a, std::map<std::string, std::string>& names) {
    if (a.name.find('.') != std::string::npos) return;  // scales: a gradient passes floats
    const std::string given(step.value_of(a.name)), value = without_transposition(given);
    unread_.erase(value);
    if (!known_.contains(value) && a.optional) return;  // left out
    if (!known_.contains(value))
      return wrong.push_back(fmt::format("{} reads {}, which is not there", step.op, value));
    Dims dims = known_[value];
    if (value != given && !a.transposed)
      wrong.push_back(fmt::format("{}.{} is never transposed", step.op, a.name));
    if (value != given) std::swap(dims[dims.size() - 2], dims.back());
    compare(fmt::format("{}.{}", step.op, a.name), split(a.dims), value, dims, names);
  }
  void write(const GradientCall& step, const Argument& a, std::map<std::string, std::string>& names) {
    const std::string value(step.value_of(a.name));
    if (known_.contains(value))
      return wrong.push_back(fmt::format("{} writes {}, which is there", step.op, value));
    Dims dims = split(a.dims);
    if (wanted_.contains(value))
      return compare(fmt::format("{}.{}", step.op, a.name), dims, value, known_[value] = wanted_[value],
                     names);
    for (std::string& dim : dims) dim = names.contains(dim) ? names[dim] : fmt::format("{} {}", step.op, dim);
    known_[value] = dims;
    unread_.insert(value);
  }
  void compare(const std::string& argument, const Dims& its, const std::string& value, const Dims& dims,
               std::map<std::string, std::string>& names) {
    bool fits = its.size() == dims.size();
    for (size_t d = 0; fits && d < its.size(); ++d)
      fits = names.try_emplace(its[d], dims[d]).first->second == dims[d];
    if (!fits) wrong.push_back(argument + " has other dimensions than " + value);
  }

  std::map<std::string, Dims> known_, wanted_;
  std::set<std::string> unread_;
};

TEST_P(Gradients, FitTheOpsThatTheyCall) {
  EXPECT_EQ(Misfits(*GetParam()).wrong, std::vector<std::string>());
}

// A difference of fp64 values of about 100, divided by a step of 1e-6, has this error.
constexpr double kBound = 1e-6;

TEST_P(Gradients, AreTheDerivativesOfTheReference) {
  const OpSpec& op = *GetParam();
  for (const Case& test : cases_of(op)) {
    Gradient gradient(op, test);
    EXPECT_FALSE(gradient.inputs().empty());
    for (const std::string& input : gradient.inputs()) {
      const Tensor &x = gradient.at(input), &dx = gradient.at("d" + input);
      ASSERT_EQ(std::vector(x.size, x.size + x.rank), std::vector(dx.size, dx.size + dx.rank)) << input;
      EXPECT_LE(gradient.error(input), kBound) << op.name << ", " << input << " " << test.name;
    }
  }
}

// Shows that the test can fail.
TEST_P(Gradients, WithAnotherSignAreRefused) {
  constexpr double kFound = 1e3 * kBound;
  const OpSpec& op = *GetParam();
  std::map<std::string, double> worst;
  for (const Case& test : cases_of(op)) {
    Gradient gradient(op, test);
    for (const std::string& input : gradient.inputs())
      if (double& error = worst[input]; error <= kFound) error = std::max(error, gradient.error(input, -1));
  }
  for (const auto& [input, error] : worst) EXPECT_GT(error, kFound) << op.name << ", " << input;
}

INSTANTIATE_TEST_SUITE_P(Ops, Gradients, testing::ValuesIn(differentiable()),
                         [](const auto& param) { return std::string(param.param->name); });

// Gradients that do not fit, each in one way.
TEST(GradientCalls, ThatDoNotFitAreFound) {
  const auto wrong = [](std::vector<GradientCall> calls) {
    OpSpec op = get_op("softmax");
    op.gradient = std::move(calls);
    return Misfits(op).wrong;
  };
  using Wrong = std::vector<std::string>;
  EXPECT_EQ(wrong({{"softmax_backward"}}), Wrong());
  EXPECT_EQ(wrong({{"softmax_forward"}}), Wrong{"softmax_forward is no op"});
  EXPECT_EQ(wrong({{"softmax_backward", {{"z", "y"}}}}), Wrong{"softmax_backward has no argument z"});
  EXPECT_EQ(wrong({{"softmax_backward", {{"y", "z"}}}}),
            Wrong{"softmax_backward reads z, which is not there"});
  EXPECT_EQ(wrong({{"softmax_backward", {{"dx", "x"}}}}), Wrong{"softmax_backward writes x, which is there"});
  EXPECT_EQ(wrong({{"softmax_backward", {{"dx", "e"}}}}), Wrong{"e is written and not read"});
  EXPECT_EQ(wrong({{"column_sum", {{"x", "dy"}, {"y", "dx"}}}}),
            Wrong{"column_sum.y has other dimensions than dx"});
  EXPECT_EQ(wrong({{"transpose", {{"x", "dy"}, {"y", "dx"}}}}),
            Wrong{"transpose.y has other dimensions than dx"});
}

TEST(GradientCalls, AreNamedByWhatTrainingNeeds) {
  for (const char* name : {"activation", "add", "bias", "embedding", "flash_attention", "gate_rows",
                           "gated_activation", "head_norm", "layer_norm", "linear", "matmul", "multiply",
                           "rms_norm", "rope", "scale", "softcap", "softmax"})
    EXPECT_FALSE(get_op(name).gradient.empty()) << name;
}

}  // namespace
}  // namespace heddle
