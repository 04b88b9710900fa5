#include "heddle/ops/sympow/power_attention.h"
#include "heddle/ops/sympow/power_attention_examples.h"

namespace heddle::power_attention {

std::vector<Case> cases() {
  return power_attention_cases_of<PowerAttention>(1);
}

}  // namespace heddle::power_attention
