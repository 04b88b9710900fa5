#include "heddle/tile/budget.h"

#include <string>

#include <gtest/gtest.h>

namespace heddle::tile {
namespace {

// The GEMM: a producer, two consumer groups, four stages of 48 KB, 32 KB to store through.
constexpr Budget kGemm = Budget{}
                             .role("bring", 4, 40)
                             .role("work", 8, 232)
                             .part("ring", 4 * 49152, 1024)
                             .part("sums", 32768 - 1024, 1024)
                             .part("barriers", 64, 8);

template <Budget kBudget>
constexpr i32 ring_bytes() {
  return kBudget.offset("sums") - kBudget.offset("ring");
}

TEST(Budget, AddsUp) {
  static_assert(kGemm.fits());
  static_assert(kGemm.threads() == 384 && kGemm.launch_registers() == 168);
  static_assert(kGemm.registers() == 128 * 40 + 256 * 232 && kGemm.registers() <= 168 * 384);
  static_assert(kGemm.offset("sums") == 196608 && kGemm.shared_bytes() == 196608 + 31744 + 64);
  static_assert(ring_bytes<kGemm>() == 196608, "a budget can be a template parameter");
  static_assert(kGemm.registers_of("bring") == 40 && kGemm.registers_of("work") == 232);
}

TEST(Budget, AlignsParts) {
  constexpr Budget kParts = Budget{}
                                .role("all", 4, 64)
                                .part("flags", 4, 4)
                                .part("rows", 100, 1024)
                                .part("more", 8)
                                .barriers("full", 3);
  EXPECT_EQ(kParts.offset("rows"), 1024u);
  EXPECT_EQ(kParts.offset("more"), 1136u) << "16 bytes unless said";
  EXPECT_EQ(kParts.offset("full"), 1144u) << "barriers have 8 bytes each";
  EXPECT_EQ(kParts.shared_bytes(), 1168);
}

TEST(Budget, NamesTheRuleThatIsBroken) {
  const auto rule = [](const Budget& budget) {
    return std::string(budget.broken_rule() ? budget.broken_rule() : "");
  };
  EXPECT_EQ(rule(kGemm), "");
  EXPECT_EQ(rule(Budget{}), "a kernel has a role");
  EXPECT_EQ(rule(Budget{}.role("bring", 4, 40).role("work", 8, 240)),
            "roles together have what the launch has");
  EXPECT_EQ(rule(Budget{}.role("bring", 4, 36).role("work", 8, 232)), "registers are exchanged by eights");
  EXPECT_EQ(rule(Budget{}.role("bring", 4, 16).role("work", 8, 232)), "a role has 24 to 256 registers");
  EXPECT_EQ(rule(Budget{}.role("bring", 1, 40).role("work", 8, 232)),
            "four warps exchange registers together");
  EXPECT_EQ(rule(Budget{}.role("all", 8, 256)), "a thread has what the launch gives it");
  EXPECT_EQ(rule(Budget{}.role("all", 36, 40)), "there are at most 1,024 threads");
  EXPECT_EQ(rule(kGemm.part("more", 16384)), "the shared memory of an SM holds all parts");
}

}  // namespace
}  // namespace heddle::tile
