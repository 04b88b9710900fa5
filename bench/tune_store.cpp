// Times the look-up of a tuned configuration, its key included: 100,000 of them in a store of 1,000. Rows
// of the gate.
#include "bench/rows.h"
#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/tune/store.h"

int main(int argc, char** argv) {
  using namespace heddle;
  using namespace heddle::tune;
  constexpr int kRecords = 1000;
  const SizeClasses powers = SizeClasses::powers(), exact = SizeClasses::exact();
  const auto key = [&](int number) {
    return Key("linear")
        .fact("dtype", "bf16")
        .fact("layout", "panels")
        .size("rows", 600, powers)
        .size("n", number, exact);
  };
  const Record record{
      OpConfig{{"stages", 4}, {"tile_m", 128}, {"tile_n", 256}}, Policy::kPickBest, 12, 1e4, {}};
  bench::Rows rows(argc, argv);
  Store store({"a device"});
  for (int i = 0; i < kRecords; ++i) store.put(key(i), record);
  rows.measure("100,000 look-ups of tuned configurations", [&] {
    for (int i = 0; i < 100 * kRecords; ++i)
      HEDDLE_CHECK(store.find(key(i % kRecords))->config == record.config);
  });
}
