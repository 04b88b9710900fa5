// The activation functions of config.json as kinds of the activation ops.
#pragma once

#include "heddle/model/hf/family_config.h"
#include "heddle/ops/activation/activation.h"

namespace heddle {

inline i32 activation_kind(HiddenAct act) {
  switch (act) {
    case HiddenAct::kSilu:
      return kSilu;
    case HiddenAct::kGelu:
      return kGelu;
    case HiddenAct::kGeluTanh:
      return kGeluTanh;
    case HiddenAct::kReluSquared:
      return kReluSquared;
  }
  return kSilu;
}

}  // namespace heddle
