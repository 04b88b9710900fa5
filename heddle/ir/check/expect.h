// Expectations about the faults of a program of test ops.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "heddle/ir/check/check_with.h"
#include "heddle/ir/check/test_ops.h"

namespace heddle::proof {

inline std::string text_of(const CheckReport& report) {
  std::string text;
  for (const Fault& fault : report.faults)
    text += fmt::format("  {}: {}\n", heddle::name(fault.kind), fault.message);
  return text.empty() ? "  no fault\n" : text;
}

// Expects a fault of this kind whose message contains all of `words`.
inline void expect_fault(const Program& program, FaultKind kind, const std::vector<std::string>& words) {
  const CheckReport report = check_with(program, find_test_op);
  for (const Fault& fault : report.faults) {
    bool all = fault.kind == kind;
    for (const std::string& word : words) all &= fault.message.find(word) != std::string::npos;
    if (all) return;
  }
  ADD_FAILURE() << "expected " << heddle::name(kind) << " with " << fmt::format("{}", words) << ", found\n"
                << text_of(report);
}

// Expects that the first fault, which is the one a user reads, has this kind.
inline void expect_first(const Program& program, FaultKind kind, const std::vector<std::string>& words) {
  const CheckReport report = check_with(program, find_test_op);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, kind) << text_of(report);
  expect_fault(program, kind, words);
}

inline void expect_ok(const Program& program) {
  const CheckReport report = check_with(program, find_test_op);
  EXPECT_TRUE(report.ok()) << text_of(report);
}

}  // namespace heddle::proof
