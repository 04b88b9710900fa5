// The memory of a case: one allocation for each argument, with canaries on both sides and values as fp64.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/ir/executor/executor.h"
#include "heddle/ir/op.h"
#include "heddle/ir/shape.h"

namespace heddle {

class CaseMemory : public Values {
 public:
  u32 add(Buffer info);
  bool canaries_whole() const;
  // The bytes of a buffer and its canaries.
  std::span<std::byte> allocation(u32 buffer) { return store_[buffer]; }

  std::vector<double> read(const Tensor& tensor) const override;
  std::vector<double> read(const Weight& weight) const override;
  void write(const Tensor& tensor, std::span<const double> values) override;
  void write(const Weight& weight, std::span<const double> values);
  std::byte* bytes(u32 buffer) override { return memory.base[buffer]; }

  std::span<const u64> panels(u32 buffer) const { return tables_.at(buffer); }
  // Gives the packed weight memory, row-major `values`, and a panel table.
  void add_weight(const char* name, Weight& weight, std::span<const double> values);

  Memory memory;
  std::vector<ProgramBuffer> buffers;

 private:
  std::vector<std::vector<std::byte>> store_;
  std::map<u32, std::vector<u64>> tables_;
};

struct Output {
  std::string name;
  Tensor tensor;
};

// Gives every argument without a buffer one: random values in [-1, 1] for inputs, poison for outputs. Returns
// the outputs.
std::vector<Output> allocate(const OpSpec& op, std::byte* args, CaseMemory& memory);

// A value that is put into an input, at one drawn place or a few.
struct Planted {
  std::string field;
  double value = 0;
};
// NaN and both infinities in each float input, but for what has a meaning of its own.
std::vector<Planted> all_planted(const OpSpec& op, const std::byte* args);
void plant(const OpSpec& op, std::byte* args, CaseMemory& memory, const Planted& planted);
// True if a result may stand where the reference has `wanted`.
bool is_equal_or_reached(const OpSpec& op, bool is_planted, double got, double wanted);

}  // namespace heddle
