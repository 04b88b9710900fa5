#include "heddle/ops/sympow/power_attention_backward.h"
#include "heddle/ops/sympow/power_attention_examples.h"

namespace heddle {

std::vector<Case> power_attention_backward_cases() {
  return power_attention_cases_of<PowerAttentionBackward>(2);
}

}  // namespace heddle
