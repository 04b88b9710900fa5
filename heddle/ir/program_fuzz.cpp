// Any bytes behind a header are either refused with an Error, or a program that can be printed, checked, and
// written again as the same bytes. The check itself may find faults but never fail.
#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/fuzz_payload.h"
#include "heddle/base/invariant.h"
#include "heddle/ir/check.h"
#include "heddle/ir/print.h"

namespace {

constexpr size_t kHeaderBytes = 32;  // put before again, so that the checksum always fits

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
