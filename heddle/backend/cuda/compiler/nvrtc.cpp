#include "heddle/backend/cuda/compiler/nvrtc.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include <dlfcn.h>
#include <link.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/python_packages.h"

namespace heddle::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibrary = "libnvrtc.so", kBuiltins = "libnvrtc-builtins.so";
constexpr std::array kMajors = {13, 12};  // versions that compile C++20

// Lists the files of `folder` that are called `stem`, with or without a version after it, newest first. A folder that
// is not there has none.
std::vector<std::string> versions_in(const fs::path& folder, std::string_view stem) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (name == stem || name.starts_with(std::string(stem) + ".")) found.push_back(entry.path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

void append(std::vector<std::string>& all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Lists the folders `parent`/`stem`*, newest version first.
std::vector<fs::path> folders_like(const fs::path& parent, std::string_view stem) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored))
    if (entry.path().filename().string().starts_with(stem) && entry.is_directory(ignored))
      found.push_back(entry.path());
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::vector<std::string> in_toolkit(const fs::path& toolkit) {
  std::vector<std::string> found = versions_in(toolkit / "lib64", kLibrary);
  append(found, versions_in(toolkit / "lib", kLibrary));
  return found;
}

std::vector<std::string> in_packages(const fs::path& folder) {
  std::vector<std::string> found;
  for (const char* package : {"cu13", "cuda_nvrtc"})
    append(found, versions_in(folder / "nvidia" / package / "lib", kLibrary));
  return found;
}

std::vector<std::string> in_python(const fs::path& environment) {
  std::vector<std::string> found;
  for (const fs::path& python : folders_like(environment / "lib", "python"))
    append(found, in_packages(python / "site-packages"));
  return found;
}

int (*driver_version)() = [] { return 0; };

// "13.0" for 13000.
std::string cuda_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

void* find(void* library, const char* symbol) {
  return ::dlsym(library, symbol);
}

}  // namespace

NvrtcPlaces NvrtcPlaces::of_process() {
  NvrtcPlaces places;
  places.environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  places.packages = python_packages();
  return places;
}

void set_driver_version(int (*version)()) {
  driver_version = version;
}

int known_driver_version() {
  return driver_version();
}

std::vector<std::string> nvrtc_candidates(const NvrtcPlaces& places) {
  if (const std::string set = places.environment("HEDDLE_NVRTC"); !set.empty()) {
    std::vector<std::string> found = is_folder(set) ? versions_in(set, kLibrary) : std::vector{set};
    return found.empty() ? std::vector{(fs::path(set) / kLibrary).string()} : found;
  }
  std::vector<std::string> found;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string toolkit = places.environment(variable); !toolkit.empty())
      append(found, in_toolkit(toolkit));
  for (const fs::path& toolkit : folders_like(places.toolkits, "cuda")) append(found, in_toolkit(toolkit));
  for (const int major : kMajors) found.push_back(fmt::format("{}.{}", kLibrary, major));
  for (const std::string& folder : places.packages) append(found, in_packages(folder));
  // An interpreter is in the folder bin of its environment.
  if (const fs::path python = places.environment("HEDDLE_PYTHON"); python.has_parent_path())
    append(found, in_python(python.parent_path().parent_path()));
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string active = places.environment(variable); !active.empty())
      append(found, in_python(active));
  append(found, in_python(fs::path(places.working_folder) / ".venv"));
  return found;
}

struct Nvrtc::Functions {
  using Program = struct ProgramTag*;
  using Text = const char*;

  void* library = nullptr;
  int (*version)(int*, int*) = nullptr;
  int (*create)(Program*, Text source, Text name, int headers, const Text* texts,
                const Text* names) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int options, const Text*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  Text (*error_text)(int) = nullptr;

  // Opens the library; returns why it cannot be used: its path where there is no such file, empty where it can.
  std::string open(const std::string& path) {
    // libnvrtc finds its builtins by their bare name: they must be open before it compiles.
    open_builtins(fs::path(path).parent_path());
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const std::string why = ::dlerror();
      return why.starts_with(path) && why.ends_with("No such file or directory") ? path : why;
    }
    if (!fs::path(path).has_parent_path()) open_builtins(fs::path(full_path()).parent_path());
    const char* missing = nullptr;
    const auto bind = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(find(library, symbol));
      if (!function) missing = symbol;
    };
    bind(version, "nvrtcVersion");
    bind(create, "nvrtcCreateProgram");
    bind(destroy, "nvrtcDestroyProgram");
    bind(compile, "nvrtcCompileProgram");
    bind(cubin_size, "nvrtcGetCUBINSize");
    bind(cubin, "nvrtcGetCUBIN");
    bind(log_size, "nvrtcGetProgramLogSize");
    bind(log, "nvrtcGetProgramLog");
    bind(error_text, "nvrtcGetErrorString");
    return missing ? fmt::format("{} has no {}", path, missing) : "";
  }

  std::string full_path() const {
    link_map* map = nullptr;
    return ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "";
  }

  // Throws if a call of the compiler failed for a reason other than a fault of the text.
  void check(int status, const std::string& what, const char* function) const {
    if (status != 0) fail(ErrorCode::kCompile, "[{}] {}: {}", what, function, error_text(status));
  }

 private:
  static void open_builtins(const fs::path& folder) {
    if (folder.empty()) return;
    const std::vector<std::string> found = versions_in(folder, kBuiltins);
    if (!found.empty()) ::dlopen(found.front().c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
};

Nvrtc::Nvrtc(const std::vector<std::string>& candidates, int driver) {
  std::string reasons;
  const auto add = [](std::string& all, const std::string& reason) {
    all += (all.empty() ? "" : "; ") + reason;
  };
  for (const std::string& candidate : candidates) {
    auto functions = std::make_unique<Functions>();
    if (const std::string reason = functions->open(candidate); !reason.empty()) {
      add(reasons, reason);
      continue;
    }
    int major = 0, minor = 0;
    functions->version(&major, &minor);
    if (driver > 0 && major > driver / 1000) {
      add(passed_over_, fmt::format("{} is {}.{}", functions->full_path(), major, minor));
      ::dlclose(functions->library);
      continue;
    }
    functions_ = std::move(functions);
    path_ = functions_->full_path();
    version_ = 1000 * major + 10 * minor;
    return;
  }
  if (!passed_over_.empty())
    fail(ErrorCode::kUnsupported,
         "[cuda] no run-time compiler here (libnvrtc) makes code that the driver takes, which is for CUDA "
         "{}: {}; "
         "install nvidia-cuda-nvrtc-cu{} or a newer driver",
         cuda_text(driver), passed_over_, driver / 1000);
  fail(ErrorCode::kUnsupported,
       "[cuda] NVIDIA's run-time compiler (libnvrtc) is not here; `pip install nvidia-cuda-nvrtc` in the "
       "active Python environment brings it (nvidia-cuda-nvrtc-cu{} for a driver of CUDA {}), and "
       "HEDDLE_NVRTC may name its file or folder; tried {}",
       kMajors.back(), kMajors.back(), reasons);
}

Nvrtc::~Nvrtc() = default;  // the library stays open: it has threads of its own

const Nvrtc& Nvrtc::get() {
  static const Nvrtc nvrtc(nvrtc_candidates(NvrtcPlaces::of_process()), driver_version());
  return nvrtc;
}

std::string Nvrtc::version_text() const {
  return cuda_text(version_);
}

Nvrtc::Output Nvrtc::compile(const Input& input, const std::vector<NamedText>& headers) const {
  std::vector<const char*> names, texts, options;
  for (const auto& [name, text] : headers) names.push_back(name.c_str()), texts.push_back(text.c_str());
  for (const std::string& option : input.options) options.push_back(option.c_str());

  const Functions& nvrtc = *functions_;
  Functions::Program program = nullptr;
  nvrtc.check(nvrtc.create(&program, input.source.c_str(), input.name.c_str(), int(headers.size()),
                           texts.data(), names.data()),
              input.name, "nvrtcCreateProgram");
  const auto destroy = [&](Functions::Program* p) { nvrtc.destroy(p); };
  const std::unique_ptr<Functions::Program, decltype(destroy)> guard(&program, destroy);

  constexpr int kCompilation = 6;  // NVRTC_ERROR_COMPILATION
  Output output;
  const int status = nvrtc.compile(program, int(options.size()), options.data());
  size_t size = 0;
  nvrtc.check(nvrtc.log_size(program, &size), input.name, "nvrtcGetProgramLogSize");
  output.log.resize(size);
  nvrtc.check(nvrtc.log(program, output.log.data()), input.name, "nvrtcGetProgramLog");
  while (!output.log.empty() && output.log.back() == '\0') output.log.pop_back();
  if (status == kCompilation) return output;
  if (status != 0) {  // an unknown option, a builtin that cannot be opened
    output.log = fmt::format("nvrtcCompileProgram: {}\n{}", nvrtc.error_text(status), output.log);
    return output;
  }
  nvrtc.check(nvrtc.cubin_size(program, &size), input.name, "nvrtcGetCUBINSize");
  output.cubin.resize(size);
  nvrtc.check(nvrtc.cubin(program, output.cubin.data()), input.name, "nvrtcGetCUBIN");
  output.ok = true;
  return output;
}

const std::string& why_no_compiler() {
  static const std::string why = [] {
    try {
      Nvrtc::get();
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  }();
  return why;
}

}  // namespace heddle::cuda
