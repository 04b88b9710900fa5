// Replaces libnvrtc.so: builds a device program for the emulated GPU with this machine's C++ compiler. Its
// cubins are shared libraries that libcuda.cpp runs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

namespace fs = std::filesystem;

constexpr int kBadOption = 5, kCompilation = 6;  // nvrtcResult

struct Program {
  std::string source;
  std::vector<std::pair<std::string, std::string>> headers;  // name, text
  std::string log, cubin;
};

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The source plus, for each kernel, a function that the driver finds by name.
std::string with_entries(const std::string& source) {
  static const std::regex kernel(R"(__global__[^{;]*?void\s+(\w+)\s*\()");
  std::string text = source;
  for (std::sregex_iterator at(source.begin(), source.end(), kernel), end; at != end; ++at) {
    const std::string name = (*at)[1];
    text.append("\nextern \"C\" __attribute__((visibility(\"default\"))) emulated::Work* emulated_bind_")
        .append(name)
        .append("(void** args) { return emulated::bind_kernel(&")
        .append(name)
        .append(", args); }\n");
  }
  return text;
}

// A folder that its owner's destructor removes.
struct Folder {
  fs::path path;
  explicit Folder(const fs::path& parent) {
    std::string name = (parent / "emulated_gpu_XXXXXX").string();
    if (::mkdtemp(name.data())) path = name;
  }
  ~Folder() { fs::remove_all(path); }
};

// Returns the folder of a program's headers, named by what they say. The first program that has them writes it: to write
// 300 files takes as long as to compile a small program. Empty where it cannot be written.
fs::path headers_of(const Program& program) {
  std::vector<std::pair<std::string, std::string>> files = program.headers;
  files.emplace_back("heddle/kit/arch/common.cuh", read(EMULATED_GPU_SOURCE "/arch.cuh"));
  for (const std::string name : {"matrices", "memory", "mma", "numbers", "on_chip", "thread"})
    files.emplace_back("heddle/kit/arch/" + name + ".cuh",
                       "#pragma once\n// " + name + "\n#include \"heddle/kit/arch/common.cuh\"\n");
  for (const std::string name : {"cluster.cuh", "wgmma.cuh"})
    files.emplace_back("heddle/kit/arch/" + name, read(EMULATED_GPU_SOURCE "/" + name));
  std::string all;
  for (const auto& [name, text] : files) all.append(name).append(1, 0).append(text).append(1, 0);
  const fs::path parent = fs::path(EMULATED_GPU_AHEAD).parent_path();
  fs::path folder = parent / std::to_string(std::hash<std::string>()(all));
  if (fs::exists(folder)) return folder;
  Folder made(parent);
  if (made.path.empty()) return {};
  for (const auto& [name, text] : files) write(made.path / name, text);
  std::error_code ignored;  // another process was faster
  fs::rename(made.path, folder, ignored);
  return folder;
}

// The length of what a program begins with and others may share: its constants, and what the frames of bodies are made of.
size_t shared_size(const std::string& source) {
  const std::string last = "#include \"heddle/backend/cuda/device/cta.cuh\"\n";
  const size_t at = source.find(last);
  return at == std::string::npos ? 0 : at + last.size();
}

// Returns a precompiled header with what a program shares: small programs take three fifths of the time then. The second
// program that begins so compiles it, because many beginnings come once.
std::string ahead_of(const std::string& shared, const fs::path& headers) {
  if (shared.empty()) return EMULATED_GPU_AHEAD;
  std::string name = headers / ("ahead_" + std::to_string(std::hash<std::string>()(shared)) + ".h");
  if (fs::exists(name + ".gch")) return name;
  const Folder folder(headers);
  if (folder.path.empty()) return EMULATED_GPU_AHEAD;
  const std::string made = folder.path / "made";
  std::error_code ignored;  // another process was faster
  if (!fs::exists(name)) {
    write(made, read(EMULATED_GPU_AHEAD) + shared);
    fs::rename(made, name, ignored);
    return EMULATED_GPU_AHEAD;
  }
  const std::string command =
      EMULATED_GPU_CXX " -x c++-header -I" + headers.string() + " -o " + made + " " + name + " 2> /dev/null";
  if (std::system(command.c_str()) != 0) return EMULATED_GPU_AHEAD;  // the program's own log will say why
  fs::rename(made, name + ".gch", ignored);
  return name;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the compiler's names
extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 13, *minor = 9;
  return 0;
}
int nvrtcCreateProgram(Program** program, const char* source, const char*, int count,
                       const char* const* texts, const char* const* names) {
  *program = new Program{source, {}, {}, {}};
  for (int i = 0; i < count; ++i) (*program)->headers.emplace_back(names[i], texts[i]);
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  return 0;
}
int nvrtcCompileProgram(Program* program, int, const char* const*) {
  const Folder folder(fs::temp_directory_path());
  const fs::path headers = headers_of(*program);
  if (folder.path.empty() || headers.empty()) return kBadOption;
  std::string source = with_entries(program->source);
  const size_t shared = shared_size(source);
  const std::string ahead = ahead_of(source.substr(0, shared), headers);
  if (ahead != EMULATED_GPU_AHEAD)  // which has these lines, and the log counts them
    source.replace(0, shared, std::string(std::count(source.begin(), source.begin() + shared, '\n'), '\n'));
  write(folder.path / "program.cpp", source);
  const std::string library = folder.path / "program.so", log = folder.path / "log";
  const std::string command = EMULATED_GPU_CXX " -shared -include " + ahead + " -I" + headers.string() +
                              " -o " + library + " " + (folder.path / "program.cpp").string() +
                              " " EMULATED_GPU_DEVICE " " EMULATED_GPU_LINK " > " + log + " 2>&1";
  const int status = std::system(command.c_str());
  program->log = read(log);
  program->cubin = status == 0 ? read(library) : "";
  return status == 0 ? 0 : kCompilation;
}
int nvrtcGetCUBINSize(Program* program, size_t* size) {
  *size = program->cubin.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* to) {
  program->cubin.copy(to, program->cubin.size());
  return 0;
}
int nvrtcGetProgramLogSize(Program* program, size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program* program, char* to) {
  program->log.copy(to, program->log.size());
  to[program->log.size()] = 0;
  return 0;
}
const char* nvrtcGetErrorString(int status) {
  return status == kCompilation ? "the program does not compile" : "the emulated compiler cannot work";
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
