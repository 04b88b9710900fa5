// What fuzz targets need before the first input: the ops and backends of this build.
#include "heddle/engine/builtins.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  heddle::register_builtins();
  return 0;
}
