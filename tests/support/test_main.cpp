// Runs the tests of a program that uses the ops and backends of this build.
#include <gtest/gtest.h>

#include "heddle/engine/builtins.h"

int main(int argc, char** argv) {
  heddle::register_builtins();  // before tests are made from lists of ops
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
