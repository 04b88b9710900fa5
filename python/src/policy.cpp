#include "python/src/policy.h"

#include "python/src/object.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

nb::list list_of(std::span<const u32> numbers) {
  nb::list made;
  for (const u32 number : numbers) made.append(number);
  return made;
}

// (calls, tiles): (name, op, calls before it), and (call, coordinates, home, nanoseconds, is bound by memory)
nb::tuple description_of(const ScheduleInput& input) {
  nb::list calls, tiles;
  for (size_t n = 0; n < input.after.size(); ++n)
    calls.append(nb::make_tuple(nb::str(input.name[n].c_str()), nb::str(input.op_name[input.op[n]].c_str()),
                                nb::tuple(list_of(input.after[n]))));
  for (const ScheduleTile& tile : input.tiles) {
    const TileCoord& at = tile.at;
    tiles.append(
        nb::make_tuple(tile.node, nb::make_tuple(at[0], at[1], at[2], at[3]),
                       tile.home == kNoHome ? nb::object(nb::none()) : nb::object(nb::int_(tile.home)),
                       tile.cost, tile.memory_bound));
  }
  return nb::make_tuple(calls, tiles);
}

// The result of run(): lists of numbers, which Python has made of whatever the scheduler gave.
Schedule schedule_of(nb::handle streams) {
  Schedule schedule;
  for (const nb::handle stream : streams) {
    auto& tiles = schedule.workers.emplace_back();
    for (const nb::handle tile : stream) tiles.push_back(nb::cast<u32>(tile));
  }
  return schedule;
}

}  // namespace

OwnPolicy policy_of(nb::handle scheduler) {
  return [scheduler](const ScheduleInput& input) {
    const Object module = owned(PyImport_ImportModule("heddle.scheduling"));
    const Object run = owned(PyObject_GetAttrString(module.get(), "run"));
    const nb::tuple described = description_of(input);
    const Object streams =
        owned(PyObject_CallFunction(run.get(), "OOOId", scheduler.ptr(), described[0].ptr(),
                                    described[1].ptr(), unsigned(input.workers), input.message));
    return schedule_of(streams.get());
  };
}

std::string name_of_policy(nb::handle scheduler) {
  const Object name(PyObject_GetAttrString(scheduler.ptr(), "__qualname__"));
  if (name) return text_of(name.get());
  PyErr_Clear();
  return type_name(scheduler.ptr());
}

}  // namespace heddle::python
