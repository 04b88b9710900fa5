// Any bytes after a header are either refused with an Error, or are a program that can be printed, checked,
// and written again as the same bytes. The check may find faults but must never fail.
#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/fuzz_payload.h"
#include "heddle/base/invariant.h"
#include "heddle/ir/check/check.h"
#include "heddle/ir/program/print.h"

namespace {

constexpr size_t kHeaderBytes = 32;  // written again before each run, so that the checksum always matches

void run(std::string_view fields) {
  const std::string bytes = heddle::frame_program(fields);
  const heddle::Program program = heddle::parse_program(bytes, "fuzz");
  HEDDLE_CHECK(heddle::serialise_program(program) == bytes);
  (void)heddle::print_program(program, {4, 64});
  (void)heddle::print_summary(program);
  (void)heddle::check(program);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return heddle::fuzz_payload(data, size, kHeaderBytes, run);
}
