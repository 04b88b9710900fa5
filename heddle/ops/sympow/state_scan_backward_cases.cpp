#include "heddle/ops/sympow/state_scan_backward.h"
#include "heddle/ops/sympow/state_scan_examples.h"

namespace heddle::state_scan_backward {

std::vector<Case> cases() {
  return state_scan_cases_of<StateScanBackward>();
}

}  // namespace heddle::state_scan_backward
