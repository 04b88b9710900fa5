#include "heddle/ops/sympow/power_attention_examples.h"
#include "heddle/ops/sympow/power_attention_keys_backward.h"

namespace heddle::power_attention_keys_backward {

std::vector<Case> cases() {
  return power_attention_cases_of<PowerAttentionKeysBackward>(2);
}

}  // namespace heddle::power_attention_keys_backward
