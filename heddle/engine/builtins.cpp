#include "heddle/engine/builtins.h"

#include <mutex>

#include "heddle/ir/registry.h"
#include "heddle/ops/ops.h"

namespace heddle {

void register_builtins() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const OpSpec* op : builtin_ops()) add_op(op);
    for (const Backend* backend : builtin_backends()) add_backend(*backend);
  });
}

}  // namespace heddle
