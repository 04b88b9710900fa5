#include "heddle/ir/check/report.h"

namespace heddle {

const char* name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kMalformed:
      return "malformed";
    case FaultKind::kWaitInPart:
      return "wait in part";
    case FaultKind::kBadEdge:
      return "bad edge";
    case FaultKind::kDeadlock:
      return "deadlock";
    case FaultKind::kRace:
      return "race";
    case FaultKind::kNotWritten:
      return "not written";
    case FaultKind::kComputedTwice:
      return "computed twice";
    case FaultKind::kOutOfBounds:
      return "out of bounds";
    case FaultKind::kLiveReuse:
      return "live reuse";
    case FaultKind::kResidency:
      return "residency";
    case FaultKind::kDoesNotFit:
      return "does not fit";
  }
  return "?";
}

}  // namespace heddle
