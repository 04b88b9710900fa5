// The module _heddle: ops as functions, and what they are.
#include "heddle/base/digest.h"
#include "heddle/base/error.h"
#include "heddle/base/near_names.h"
#include "heddle/base/python_packages.h"
#include "heddle/ir/executor/executor.h"
#include "python/src/call.h"
#include "python/src/cases.h"
#include "python/src/describe.h"
#include "python/src/gradient.h"
#include "python/src/graph.h"
#include "python/src/model.h"
#include "python/src/optimizer.h"
#include "python/src/own_op.h"
#include "python/src/package.h"
#include "python/src/ranges.h"
#include "python/src/scored_op.h"
#include "python/src/torch_route.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

std::string given_text(nb::handle text) {
  return text_of(text.ptr());
}

nb::object function(nb::handle name, bool is_kernel) {
  return nb::steal(op_function(entry_of(given_text(name)), is_kernel));
}

nb::object packet(nb::handle name, nb::handle registered) {
  return nb::steal(packet_function(entry_of(given_text(name)), registered.ptr()));
}

nb::object autograd(nb::handle name, nb::handle in_python) {
  return nb::steal(autograd_function(entry_of(given_text(name)), in_python.ptr()));
}

void set_backend(nb::handle op, nb::handle backend) {
  OpEntry& entry = entry_of(given_text(op));
  const std::string wanted = given_text(backend);
  const bool is_reference = wanted == "reference" || wanted == "ref";
  require(is_reference || wanted == "kernel", "[{}] backend is '{}'; must be 'kernel' or 'reference' ('ref')",
          entry.op.name, wanted);
  entry.use_reference = is_reference;
}

nb::str backend(nb::handle op) {
  return nb::str(uses_reference(entry_of(given_text(op))) ? "reference" : "kernel");
}

// Has this thread's calls of an op take a backend, or what set_backend chose ("" for it); gives what held before.
nb::tuple swap_backend(nb::handle op, nb::handle backend) {
  ForcedBackend& now = forced_backend();
  const char* const before = !now.entry ? "" : now.reference ? "reference" : "kernel";
  const nb::tuple made =
      nb::make_tuple(nb::str(now.entry ? now.entry->op.name.c_str() : ""), nb::str(before));
  const std::string wanted = given_text(backend);
  now = wanted.empty() ? ForcedBackend{} : ForcedBackend{&entry_of(given_text(op)), wanted == "reference"};
  return made;
}

// A digest of memory: a list of (address, bytes).
nb::str digest_memory(const nb::list& parts, int threads) {
  std::vector<std::string_view> memory;
  for (const nb::handle part : parts) {
    const auto pair = nb::cast<nb::tuple>(part);
    memory.emplace_back(reinterpret_cast<const char*>(nb::cast<uintptr_t>(pair[0])),
                        nb::cast<size_t>(pair[1]));
  }
  std::string made;
  {
    const nb::gil_scoped_release others;
    made = digest_of_memory(memory, threads);
  }
  return nb::str(made.c_str());
}

nb::object path() {
  const Path& last = last_path();
  if (!last.entry) return nb::none();
  nb::dict made;
  made["op"] = nb::str(last.entry->op.name.c_str());
  made["backend"] = nb::str(last.reference ? "reference" : "kernel");
  const bool on_gpu = last.place.kind == MemoryPlace::Kind::kGpu;
  made["device"] = nb::str(on_gpu ? fmt::format("cuda:{}", last.place.device).c_str() : "cpu");
  made["copies"] = last.copies;
  made["threads"] = last.threads;
  made["body"] = nb::str(last.body ? last.body->name.c_str() : last.entry->op.name.c_str());
  made["why_no_kernel"] = nb::str(last.body ? last.body->why_no_kernel.c_str() : "");
  made["gradient"] = nb::str(last.gradient);
  made["tuned"] = nb::str(last.tuned ? last.tuned->summary().c_str() : "");
  return made;
}

// Configurations that a search tried, as dicts.
nb::list list_of(const std::vector<tune::Tried>& all) {
  nb::list made;
  for (const tune::Tried& one : all) {
    nb::dict row;
    row["config"] = text(one.config), row["state"] = text(one.state), row["why"] = text(one.why);
    row["rounds"] = one.rounds, row["ratio"] = one.ratio, row["low"] = one.low, row["high"] = one.high;
    row["ns"] = one.ns;
    made.append(row);
  }
  return made;
}

// (summary, nanoseconds, what the search of this call printed, and what it tried) of the configuration that the last call
// of this thread ran in; None: its op's default.
nb::object tuned() {
  const Path& last = last_path();
  if (!last.entry || !last.tuned) return nb::none();
  return nb::make_tuple(text(last.tuned->summary()), last.tuned->ns,
                        text(last.tuned->tried.empty() ? "" : tune::text_of(last.tuned->tried)),
                        list_of(last.tuned->tried));
}

// Sets this thread's settings of calls; gives those that were before.
nb::tuple swap_settings(const nb::tuple& given) {
  tune::Settings& settings = tune::thread_settings();
  const auto number = [&](size_t at) { return nb::cast<int>(given[at]); };
  const nb::tuple before =
      nb::make_tuple(settings.policy == tune::Policy::kPickBest, settings.num_workers, settings.max_configs,
                     settings.allow_failure, settings.allow_reorder);
  settings.policy = number(0) ? tune::Policy::kPickBest : tune::Policy::kPickAny;
  settings.num_workers = number(1), settings.max_configs = number(2);
  settings.allow_failure = number(3) != 0, settings.allow_reorder = number(4) != 0;
  return before;
}

// {backend: what it says of the machine, a line each}
nb::dict describe_backends() {
  entries();  // which register the backends
  nb::dict made;
  for (const Backend* backend : all_backends())
    if (backend->describe) made[nb::str(backend->name)] = nb::str(backend->describe().c_str());
  return made;
}

nb::str device_name() {
  entries();
  return nb::str(backend_of("threads").device(0).c_str());
}

}  // namespace

NB_MODULE(_heddle, module) {
  nb::set_leak_warnings(
      false);  // an op of one's own lives as long as the process, and so does all that its class names
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const Error&) {
      set_python_error();
    } catch (const PythonError&) {
    }
  });
  module.def("names", [] {
    nb::list names;
    for (const OpEntry& entry : entries())
      if (!entry.is_own) names.append(nb::str(entry.op.name.c_str()));
    return names;
  });
  module.def("function", &function, nb::arg("name"), nb::arg("is_kernel") = false);
  module.def("packet_function", &packet);
  module.def("set_over_dim", [](nb::handle name, nb::handle function) {
    entry_of(given_text(name)).set_over_dim(function.ptr());
  });
  module.def("autograd_function", &autograd);
  module.def("describe", [](nb::handle name) { return describe(entry_of(given_text(name))); });
  module.def("cases", [](nb::handle name) { return cases_of(entry_of(given_text(name))); });
  module.def("output_dtypes", [](nb::handle name, const nb::list& inputs, const nb::dict& choices) {
    return output_dtypes(entry_of(given_text(name)), inputs, choices);
  });
  module.def("output_forms", [](nb::handle name, const nb::list& inputs, const nb::dict& attributes) {
    return output_forms(entry_of(given_text(name)), inputs, attributes);
  });
  module.def("prepare_case", [](nb::handle name, size_t number, const nb::dict& tensors) {
    prepare_case(entry_of(given_text(name)), number, tensors);
  });
  module.def("did_you_mean", [](nb::handle name, const nb::list& known) {
    std::vector<std::string> names;
    for (const nb::handle each : known) names.push_back(given_text(each));
    return text(did_you_mean(given_text(name), names));
  });
  module.def("set_backend", &set_backend);
  module.def("backend", &backend);
  module.def("swap_backend", &swap_backend);
  module.def("last_path", &path);
  module.def("last_tuned", &tuned);
  module.def("swap_settings", &swap_settings);
  module.def("describe_backends", &describe_backends);
  module.def("device_name", &device_name);
  module.def("digest_memory", &digest_memory);
  module.def("set_python_packages", [](const nb::list& folders) {
    std::vector<std::string> all;
    for (const nb::handle folder : folders) all.push_back(given_text(folder));
    set_python_packages(std::move(all));
  });
  add_gradients(module);
  add_model(module);
  module.def("trust_subclasses", [](bool trust) { trust_subclasses(trust); });
  add_graph(module);
  add_optimizer(module);
  add_own_ops(module);
  add_scored_ops(module);
  add_package(module);
  add_ranges(module);
  module.def("use_exchange_tables", [](bool use) { use_exchange_tables(use); });
}

}  // namespace heddle::python
