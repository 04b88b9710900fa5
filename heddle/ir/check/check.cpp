#include "heddle/ir/check/check.h"

#include "heddle/base/error.h"
#include "heddle/ir/check/check_with.h"
#include "heddle/ir/registry.h"

namespace heddle {

CheckReport check(const Program& program) {
  return proof::check_with(program, find_op);
}

CheckReport check_or_throw(const Program& program) {
  CheckReport report = check(program);
  if (!report.ok())
    fail(ErrorCode::kInternal, "[check] {}: {} ({} faults in all)", name(report.faults[0].kind),
         report.faults[0].message, report.faults.size());
  return report;
}

}  // namespace heddle
