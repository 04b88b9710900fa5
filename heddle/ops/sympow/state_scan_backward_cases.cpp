#include "heddle/ops/sympow/state_scan_backward.h"
#include "heddle/ops/sympow/state_scan_examples.h"

namespace heddle {

std::vector<Case> state_scan_backward_cases() {
  return state_scan_cases_of<StateScanBackward>();
}

}  // namespace heddle
