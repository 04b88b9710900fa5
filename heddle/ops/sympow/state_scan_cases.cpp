#include "heddle/ops/sympow/state_scan.h"
#include "heddle/ops/sympow/state_scan_examples.h"

namespace heddle::state_scan {

std::vector<Case> cases() {
  return state_scan_cases_of<StateScan>();
}

}  // namespace heddle::state_scan
