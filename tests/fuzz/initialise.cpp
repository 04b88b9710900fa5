// Registers the ops and backends of this build before the first input of a fuzz target.
#include "heddle/engine/builtins.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  heddle::register_builtins();
  return 0;
}
