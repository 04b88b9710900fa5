#include "heddle/ops/sympow/state_scan.h"
#include "heddle/ops/sympow/state_scan_examples.h"

namespace heddle {

std::vector<Case> state_scan_cases() {
  return state_scan_cases_of<StateScan>();
}

}  // namespace heddle
