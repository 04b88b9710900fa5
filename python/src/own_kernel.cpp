#include "python/src/own_kernel.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "python/src/arguments.h"
#include "python/src/describe.h"
#include "python/src/locked.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

OpConfig config_of(const std::string& op, const nb::dict& values) {
  if (values.size() == 0) return {};
  std::string text;
  for (const auto& [name, value] : values) {
    require(PyLong_Check(value.ptr()), "[{}] the configuration has {}={}; must be a whole number", op,
            text_of(name.ptr()), text_of(value.ptr()));
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", text_of(name.ptr()), text_of(value.ptr()));
  }
  return OpConfig::parse(text);
}

nb::dict object_of(const OpConfig& config) {
  nb::dict made;
  for (const auto& [name, value] : config.values()) made[text(name)] = value;
  return made;
}

i64 number(const nb::dict& of, const char* name) {
  return nb::cast<i64>(of[name]);
}

// Sizes, strides and boxes begin with the dimension whose elements are adjacent.
KernelMap map_of(const std::string& op, const std::vector<Field>& fields, const nb::dict& given) {
  KernelMap map{.offset = number(given, "offset"), .rank = i32(number(given, "rank"))};
  if (const nb::object tensor = given["tensor"]; tensor.is_none())
    map.in_workspace = true;
  else
    map.address = find_field(fields, text_of(tensor.ptr()))->offset + offsetof(Tensor, data);
  const auto sizes = nb::cast<nb::list>(given["size"]), strides = nb::cast<nb::list>(given["stride"]),
             box = nb::cast<nb::list>(given["box"]);
  require(map.rank <= KernelMap::kMostRank, "[{}] a tensor map has {} dimensions; must have {} at most", op,
          map.rank, KernelMap::kMostRank);
  for (size_t d = 0; d < size_t(map.rank); ++d) {
    map.size[d] = nb::cast<i64>(sizes[d]), map.stride[d] = nb::cast<i64>(strides[d]);
    map.box[d] = nb::cast<i32>(box[d]);
  }
  const std::string dtype = text_of(nb::object(given["dtype"]).ptr());
  map.dtype = parse_dtypes(dtype).at(0);
  constexpr BoxSwizzle kSwizzles[] = {BoxSwizzle::kNone, BoxSwizzle::k32, BoxSwizzle::k64, BoxSwizzle::k128};
  map.swizzle = kSwizzles[number(given, "swizzle")];
  map.rounds_to_tf32 = nb::cast<bool>(given["tf32"]);
  return map;
}

KernelLaunch launch_of(const std::string& op, const std::vector<Field>& fields, const nb::dict& given) {
  KernelLaunch launch{.name = text_of(nb::object(given["name"]).ptr()),
                      .grid = u32(number(given, "grid")),
                      .cluster = u32(number(given, "cluster")),
                      .threads = u32(number(given, "threads")),
                      .shared_bytes = number(given, "shared_bytes")};
  for (const nb::handle map : nb::cast<nb::list>(given["maps"]))
    launch.maps.push_back(map_of(op, fields, nb::cast<nb::dict>(map)));
  return launch;
}

// {argument: (dtype, sizes, strides in elements)} of the tensors that the call has.
nb::dict tensors_of(const std::vector<Field>& fields, const std::byte* args) {
  nb::dict made;
  for (const Field& field : fields) {
    if (!field.is_tensor() || field.tensor(args).rank == 0) continue;
    const Tensor& tensor = field.tensor(args);
    nb::list sizes, strides;
    for (int d = 0; d < tensor.rank; ++d) sizes.append(tensor.size[d]), strides.append(tensor.stride[d]);
    made[text(field.name)] = nb::make_tuple(text(name(tensor.dtype)), sizes, strides);
  }
  return made;
}

nb::dict target_of(const KernelTarget& target) {
  nb::dict made;
  made["arch"] = target.arch, made["multiprocessors"] = target.multiprocessors;
  made["shared_bytes"] = target.shared_bytes, made["tensor_maps"] = target.tensor_maps;
  made["fast_memory"] = target.fast_memory;
  return made;
}

}  // namespace

std::vector<OpConfig> own_configs(const std::string& op, const nb::list& given) {
  std::vector<OpConfig> configs;
  for (const nb::handle each : given) {
    const auto pair = nb::cast<nb::tuple>(each);
    const OpConfig config = config_of(op, nb::cast<nb::dict>(pair[0]));
    configs.push_back(nb::cast<bool>(pair[1]) ? config.reordering() : config);
  }
  return configs;
}

std::vector<OpConfig> configs_for(const std::vector<OpConfig>& all, const TilingTarget& target) {
  std::vector<OpConfig> some = all;
  if (!target.kernels) std::erase_if(some, is_of_kernel);
  std::ranges::stable_partition(some, is_of_kernel);
  return some;
}

KernelRule own_kernel_rule(const std::string& op, const std::vector<Field>& fields, PyObject* plan,
                           bool needs_kernel) {
  return [op, fields, plan, needs_kernel](const std::byte* args, const KernelTarget& target,
                                          const OpConfig& config) {
    const Locked python;
    nb::dict attributes;
    for (const Field& field : fields)
      if (field.is_attribute() && field.is_whole())
        attributes[text(field.name)] = attribute_object(field, args);
    const Object made =
        owned(PyObject_CallFunctionObjArgs(plan, tensors_of(fields, args).ptr(), attributes.ptr(),
                                           target_of(target).ptr(), object_of(config).ptr(), nullptr));
    KernelPlan planned;
    if (PyUnicode_Check(made.get())) {
      planned.why_not = text_of(made.get());
      if (needs_kernel)
        fail(ErrorCode::kUnsupported,
             "[{}] its kernel does not take this call: {}; it has no body to run instead", op,
             planned.why_not);
      return planned;
    }
    const auto parts = nb::cast<nb::dict>(nb::handle(made.get()));
    planned.file = text_of(nb::object(parts["file"]).ptr());
    planned.constants = config_of(op, nb::cast<nb::dict>(parts["constants"]));
    planned.workspace_bytes = number(parts, "workspace_bytes"),
    planned.cleared_bytes = number(parts, "cleared_bytes");
    for (const nb::handle launch : nb::cast<nb::list>(parts["launches"]))
      planned.launches.push_back(launch_of(op, fields, nb::cast<nb::dict>(launch)));
    return planned;
  };
}

}  // namespace heddle::python
