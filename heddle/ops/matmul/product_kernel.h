// Plans a product of matrices as a whole kernel (matmul_kernel.sm90.cuh): matmul, bmm and scaled_mm say what
// they multiply.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "heddle/ir/kernel.h"
#include "heddle/ir/matrices.h"

namespace heddle {

// Rows and terms of groups that the kernel takes are multiples of it: of the rows of a tile, and of the terms of a stage.
constexpr i32 kGroupUnit = 128;

struct ProductCall {
  const char* op;
  Matrices a, b;  // data of three dimensions where there are batches
  Tensor y;
  std::array<size_t, 3> at;  // where the arguments have the tensors of a, b and y
  i32 batches, rows, columns, terms;
  bool is_tf32 = false;     // elements are f32, multiplied as tf32
  bool is_fp8 = false;      // and these constants hold:
  bool promotes = false;    // sums of 128 k are added in f32
  i32 scales = 0;           // KernelConfig::kScales
  bool is_grouped = false;  // rows, or terms, are in groups of multiples of kGroupUnit
  std::string why_not;      // what does not fit the kernel with wgmma in the op's other arguments
};

// Returns why no kernel of products takes these operands (their dtypes and orders), or "" if one may.
std::string why_operands(const ProductCall& call);
// Returns why none takes them as they lie (their pitches), or "" if one may.
std::string why_pitches(const ProductCall& call);

// The configurations, the likely best first; those with one part of k give the same bits.
std::vector<OpConfig> product_kernel_configs(const ProductCall& call, const KernelTarget& target);
KernelPlan product_kernel(const ProductCall& call, const KernelTarget& target, const OpConfig& config);

}  // namespace heddle
