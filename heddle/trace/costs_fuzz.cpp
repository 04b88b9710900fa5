// Any text is either refused with an Error, or gives costs that are the same after they are written and read
// again.
#include <cstdint>
#include <string>

#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/trace/calibrate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const std::string written = heddle::to_json(heddle::parse_costs(text, "fuzz", {}));
    HEDDLE_CHECK(heddle::to_json(heddle::parse_costs(written, "fuzz", {})) == written);
  } catch (const heddle::Error& error) {
    if (error.code() == heddle::ErrorCode::kInternal) throw;
  }
  return 0;
}
