#include "heddle/ops/sympow/power_attention_examples.h"
#include "heddle/ops/sympow/power_attention_past_backward.h"

namespace heddle {

std::vector<Case> power_attention_past_backward_cases() {
  return power_attention_cases_of<PowerAttentionPastBackward>(2);
}

}  // namespace heddle
