#include "heddle/ops/sympow/power_attention_backward.h"
#include "heddle/ops/sympow/power_attention_examples.h"

namespace heddle::power_attention_backward {

std::vector<Case> cases() {
  return power_attention_cases_of<PowerAttentionBackward>(2);
}

}  // namespace heddle::power_attention_backward
