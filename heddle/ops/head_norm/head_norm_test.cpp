// Tests what the gradient of head_norm refuses.
#include <exception>
#include <string>

#include <gtest/gtest.h>

#include "heddle/ir/cases.h"
#include "heddle/ir/registry.h"
#include "heddle/ops/head_norm/head_norm_backward.h"

namespace heddle {
namespace {

TEST(PartsOfHeads, OfNoSizeThereIsAreRefused) {
  for (const i32 part_rows : {-1, 1025}) {
    HeadNormBackward args{.x = input(DType::kF32, {4, 16}),
                          .weight = input(DType::kF32, {16}),
                          .dy = input(DType::kF32, {4, 16})};
    args.head_dim = 8, args.heads = 2, args.part_rows = part_rows;
    std::string message;
    try {
      get_op("head_norm_backward").infer(reinterpret_cast<std::byte*>(&args));
    } catch (const std::exception& error) {
      message = error.what();
    }
    EXPECT_NE(message.find("must be 1 to 1024"), std::string::npos) << part_rows << ": " << message;
  }
}

}  // namespace
}  // namespace heddle
