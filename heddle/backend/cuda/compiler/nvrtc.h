// NVIDIA's run-time compiler: libnvrtc, opened at run time. No header of it is needed to build.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace heddle::cuda {

// Where the compiler may lie. Read once from the process by default; tests give their own.
struct NvrtcPlaces {
  std::function<std::string(const char*)> environment;  // value of a variable; empty: not set
  std::string working_folder = ".";
  std::string toolkits = "/usr/local";  // cuda*/lib64 below it
  std::vector<std::string> packages;    // folders of Python packages, as an interpreter's sys.path has them

  static NvrtcPlaces of_process();
};

// Libraries to try, in this order: HEDDLE_NVRTC (a file or a folder; alone where it is set), the toolkit (CUDA_HOME,
// CUDA_PATH, /usr/local/cuda*), the loader's path (names without a folder), the packages of the interpreter that heddle
// runs in, the Python environment (of HEDDLE_PYTHON, VIRTUAL_ENV, CONDA_PREFIX, .venv).
std::vector<std::string> nvrtc_candidates(const NvrtcPlaces& places);
// Names the function that says what the driver is for (0: there is none), before the compiler is first wanted.
void set_driver_version(int (*version)());
int known_driver_version();

class Nvrtc {
 public:
  // The compiler of this process, whose code its driver takes. Throws Error(kUnsupported) with where it looked.
  static const Nvrtc& get();
  // Tries the candidates in their order. `driver` is what the driver is for, as version() has it, and 0 where there
  // is no driver. A driver loads the code of every compiler of its own major version and of older ones, so newer ones are
  // passed over. Throws as get().
  explicit Nvrtc(const std::vector<std::string>& candidates, int driver = 0);
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;
  ~Nvrtc();

  int version() const { return version_; }  // 1000 * major + 10 * minor
  std::string version_text() const;         // "13.0"
  const std::string& path() const { return path_; }
  // Which compilers came earlier and are too new for the driver, with their versions; empty: none.
  const std::string& passed_over() const { return passed_over_; }

  struct Output {
    bool ok = false;
    std::string cubin, log;
  };
  using NamedText = std::pair<std::string, std::string>;
  // Compiles one text. `headers` are (name in #include, text) and are seen as files are. Safe from several threads.
  // Throws Error(kCompile) where the compiler itself fails; a fault of the text is an Output that is not ok.
  struct Input {
    std::string name, source;
    std::vector<std::string> options;
  };
  Output compile(const Input& input, const std::vector<NamedText>& headers) const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;
  std::string path_, passed_over_;
  int version_ = 0;
};

// Returns why nothing can be compiled here, with where the compiler was looked for, or "" where it can.
// Worked out once.
const std::string& why_no_compiler();

}  // namespace heddle::cuda
