// Any bytes are either refused with an Error, or a timeline that can be summed up, shown, and written again
// as the same timeline. Inputs are plain payloads, to which the fuzzer adds the header: it need not find zlib
// streams.
#include <cstdint>

#include "heddle/base/error.h"
#include "heddle/base/fuzz_payload.h"
#include "heddle/base/invariant.h"
#include "heddle/trace/page.h"
#include "heddle/trace/perfetto.h"
#include "heddle/trace/summary.h"
#include "heddle/trace/timeline_file.h"

namespace {

constexpr size_t kHeaderBytes = 12;

void run(std::string_view payload) {
  const std::string file = std::string("nanotrace\0\x01\0", kHeaderBytes).append(payload);
  const heddle::Nanotrace trace = heddle::parse_nanotrace(file, "fuzz");
  HEDDLE_CHECK(heddle::serialise_nanotrace(trace, false) == file);
  const heddle::Timeline timeline = heddle::from_nanotrace(trace, "fuzz");
  (void)heddle::to_text(heddle::summarise(timeline));
  (void)heddle::serialise_perfetto(timeline);
  const std::string again = heddle::serialise_nanotrace(heddle::to_nanotrace(timeline));
  const std::string page = heddle::timeline_page(timeline);
  HEDDLE_CHECK(heddle::serialise_nanotrace(heddle::to_nanotrace(heddle::parse_timeline(page, "fuzz"))) ==
               again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return heddle::fuzz_payload(data, size, kHeaderBytes, run);
}
