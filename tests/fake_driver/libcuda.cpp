// Replaces libcuda.so.1, to test heddle's messages about a driver that cannot be used. FAKE_DRIVER names the
// problem: "old", "empty" (no device), "broken" (does not start), "cuda12" (for CUDA 12.4, where others are for 13.0); otherwise
// it starts and has few functions.
#include <cstdlib>
#include <string_view>

namespace {

bool ails(std::string_view what) {
  const char* value = std::getenv("FAKE_DRIVER");
  return value && what == value;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {

int cuDriverGetVersion(int* version) {
  *version = ails("old") ? 11080 : ails("cuda12") ? 12040 : 13000;
  return 0;
}
int cuInit(unsigned) {
  return ails("empty") ? 100 : ails("broken") ? 803 : 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuGetErrorName(int, const char** text) {
  *text = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "driver and library are of different versions";
  return 0;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
