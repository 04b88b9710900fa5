#include "python/src/package.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "heddle/base/error.h"
#include "heddle/engine/artefact.h"
#include "heddle/engine/builtins.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/hub_cache.h"
#include "heddle/model/hf/other_formats.h"
#include "python/src/entry.h"
#include "python/src/model_settings.h"
#include "python/src/teller.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

std::string given(nb::handle text) {
  return text_of(text.ptr());
}

// The kinds of devices that heddle knows of an architecture, or with `workers` any that has room for them.
std::vector<DeviceKind> kinds_of(const Backend& backend, const std::string& arch, i32 workers) {
  if (workers > 0)
    return {{.name = "", .executor = backend.kinds.front().executor, .arch = arch, .units = 0}};
  std::vector<DeviceKind> found;
  std::set<i32> units;  // kinds with as many run the same programs
  for (const DeviceKind& kind : backend.kinds)
    if (kind.arch == arch && units.insert(kind.units).second) found.push_back(kind);
  require(!found.empty(),
          "[package] no device of {} is known; give the number of its multiprocessors (workers=...)", arch);
  return found;
}

// Writes what calls of ops need on an architecture. Returns the number of kernels.
size_t package_ops(const nb::list& names, nb::handle arch, bool all_configs, nb::handle folder,
                   nb::object on_progress) {
  entries();  // which register the backends
  std::vector<std::string> ops;
  for (const nb::handle name : names) ops.push_back(entry_of(given(name)).op.name);
  const std::string target = given(arch), to = given(folder);
  Teller teller(std::move(on_progress));
  const nb::gil_scoped_release others_run;
  const ProgressScope told([&](const ::heddle::Progress& progress) { teller.tell(progress); });
  const DeviceCompiler& compiler = *backend_for_arch(target).compiler;
  const DeviceCode code = compiler.compile_calls(ops, target, all_configs);
  compiler.save_for_package(code, to);
  return code.size();
}

// Compiles an op for each architecture: dicts with the body's name, registers, and why it does not compile.
nb::list compile_op(nb::handle op, const nb::list& archs, bool kernels_alone) {
  entries();
  const std::string name = entry_of(given(op)).op.name;
  std::vector<std::string> targets;
  for (const nb::handle arch : archs) targets.push_back(given(arch));
  std::vector<BodyCheck> checks;
  {
    const nb::gil_scoped_release others_run;
    for (const std::string& target : targets)
      std::ranges::move(
          backend_for_arch(target).compiler->check_bodies(
              std::vector{target}, {.ops = {name}, .all_configs = true, .kernels_alone = kernels_alone}),
          std::back_inserter(checks));
  }
  nb::list made;
  for (const BodyCheck& check : checks) {
    nb::dict row;
    row["body"] = nb::str(check.op.c_str()), row["arch"] = nb::str(check.arch.c_str());
    row["config"] = nb::str(check.config.text().c_str());
    row["registers"] = check.use.registers, row["shared_bytes"] = check.use.shared_bytes;
    row["spilled_bytes"] = check.use.spill_store_bytes + check.use.spill_load_bytes;
    // A budget is one of heddle's own ops.
    row["failure"] = nb::str(check.use.registers == 0 ? check.failure.c_str() : "");
    made.append(row);
  }
  return made;
}

// Writes what a model needs, as heddle.load opens it with these options.
size_t package_model(nb::handle model_folder, nb::handle arch, const nb::dict& given_options,
                     nb::handle folder, nb::object on_progress) {
  register_builtins();
  const std::string model_path = find_model(given(model_folder)).path, target = given(arch),
                    to = given(folder);
  const EngineOptions options = options_with("cuda", given_options);
  Teller teller(std::move(on_progress));
  const nb::gil_scoped_release others_run;
  const ProgressScope told([&](const ::heddle::Progress& progress) { teller.tell(progress); });
  require_model_folder(model_path);
  const Backend& backend = backend_for_arch(target);
  const std::shared_ptr<const Model> model = open_model(model_path);
  DeviceCode code;
  for (const DeviceKind& kind : kinds_of(backend, target, options.workers))
    code.merge(make_artefact(model, options, kind).code);
  backend.compiler->save_for_package(code, to);
  return code.size();
}

nb::list archs() {
  entries();
  nb::list names;
  for (const std::string& name : known_archs()) names.append(nb::str(name.c_str()));
  return names;
}

}  // namespace

void add_package(nb::module_& module) {
  module.def("package_ops", &package_ops, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  module.def("compile_op", &compile_op);
  module.def("package_model", &package_model, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  module.def("archs", &archs);
}

}  // namespace heddle::python
