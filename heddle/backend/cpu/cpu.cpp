// The CPU backend: which executors it has.
#include "heddle/backend/cpu/describe.h"
#include "heddle/backend/cpu/op_call.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {

std::unique_ptr<Executor> create_threads(const Program&, const Memory&, const ExecutorOptions&);
std::unique_ptr<Executor> create_reference(const Program&, const Memory&, const ExecutorOptions&);

namespace cpu {

const Backend& backend() {
  static const Backend backend = {
      .name = "cpu",
      .executors = {{.name = "threads",
                     .doc = "threads, SIMD",
                     .create = create_threads,
                     .unavailable = [] { return std::string(); }},
                    {.name = "reference",
                     .doc = "one thread, any legal interleaving, every access checked",
                     .create = create_reference,
                     .unavailable = [] { return std::string(); }}},
      .describe = describe_cpu,
      .device =
          [](i32 device) {
            require_cpu(device);
            return name_cpu();
          },
      .read_bandwidth =
          [](i32 device, int threads) {
            require_cpu(device);
            return measure_read_bandwidth(threads);
          },
      .op_calls = cpu_op_calls,
      .kinds = {{.name = "cpu", .executor = "threads"}},
  };
  return backend;
}

}  // namespace cpu
}  // namespace heddle
