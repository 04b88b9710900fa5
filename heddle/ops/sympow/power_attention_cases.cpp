#include "heddle/ops/sympow/power_attention.h"
#include "heddle/ops/sympow/power_attention_examples.h"

namespace heddle {

std::vector<Case> power_attention_cases() {
  return power_attention_cases_of<PowerAttention>(1);
}

}  // namespace heddle
