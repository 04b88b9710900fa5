// Blocks have the values that gguf-py's dequantisers give them, as scripts/goldens/make_gguf_blocks.py wrote them.
#include "heddle/model/hf/gguf_blocks.h"

#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "heddle/model/hf/tensor_file.h"

namespace heddle {
namespace {

TEST(GgufBlocks, EveryTypeHasTheBitsOfGgufPy) {
  const TensorFile goldens(HEDDLE_SOURCE_DIR "/tests/goldens/gguf/blocks.safetensors");
  int types = 0;
  for (const GgufType& type : gguf_types()) {
    const std::string name = type.name;
    if (type.elems == 1) continue;
    const auto blocks = goldens.bytes(name + ".blocks"), wanted = goldens.bytes(name + ".values");
    ASSERT_EQ(blocks.size() / size_t(type.bytes) * size_t(type.elems), wanted.size() / sizeof(float)) << name;
    std::vector<float> values(wanted.size() / sizeof(float)), expected(values.size());
    std::memcpy(expected.data(), wanted.data(), wanted.size());
    expand_blocks(type, blocks, values);
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(expected[i]))
        ASSERT_TRUE(std::isnan(values[i])) << name << " element " << i;
      else
        ASSERT_EQ(std::memcmp(&values[i], &expected[i], sizeof(float)), 0)
            << name << " element " << i << ": " << values[i] << ", not " << expected[i];
    }
    ++types;
  }
  EXPECT_EQ(types, 20);
}

}  // namespace
}  // namespace heddle
