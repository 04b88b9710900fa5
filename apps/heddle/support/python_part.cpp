#include "apps/heddle/support/python_part.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "heddle/ir/registry.h"

namespace heddle {
namespace {

// Says what is missing before a traceback would.
constexpr const char* kStart =
    "import importlib.util, runpy, sys\n"
    "name = sys.argv.pop(1)\n"
    "sys.path.remove('')\n"  // a clone's folder heddle is no package
    "if importlib.util.find_spec('heddle') is None:\n"
    "    sys.exit(f'heddle: {sys.executable} has no package heddle: pip install . in a clone; '\n"
    "             'HEDDLE_PYTHON names another interpreter')\n"
    "try:\n"
    "    runpy.run_module(name, run_name='__main__', alter_sys=True)\n"
    "except ModuleNotFoundError as error:\n"
    "    sys.exit(f'heddle: {sys.executable} has no package {error.name}: pip install {error.name}; '\n"
    "             'HEDDLE_PYTHON names another interpreter')\n";

// "my_file.py:MyOp", "my_file.py" and "package.module:MyOp" name ops that only Python knows; "cuda:1" names none.
bool is_own_op(std::string_view word) {
  if (word.starts_with('-')) return false;
  const size_t colon = word.rfind(':');
  if (colon == std::string_view::npos) return word.ends_with(".py");
  const std::string_view name = word.substr(colon + 1);
  return !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_') &&
         !std::filesystem::exists(word);
}

std::string module_of(const std::vector<std::string_view>& words) {
  if (words.size() < 2) return {};
  const auto is_suite = [](std::string_view word) {
    return word == "--suite" || word.starts_with("--suite=");
  };
  const bool has_own = std::ranges::any_of(words.begin() + 1, words.end(), is_own_op);
  if (words[0] == "bench" && (has_own || std::ranges::any_of(words, is_suite))) return "heddle.bench";
  if ((words[0] == "tune" || words[0] == "layout") && has_own) return "heddle." + std::string(words[0]);
  if (words[0] == "check" &&
      (has_own || ((words[1] == "all" || find_op(words[1])) && !std::filesystem::exists(words[1]))))
    return "heddle.check";
  constexpr std::array kTools = {"trace", "ncu", "nsys", "sanitizer"};
  const bool is_tool = std::ranges::find(kTools, words[1]) != kTools.end();
  return words[0] == "profile" && is_tool ? "heddle.profile" : "";
}

}  // namespace

std::string become_python(const std::string& command, const std::string& module,
                          const std::vector<std::string>& arguments) {
  const char* given = std::getenv("HEDDLE_PYTHON");
  const std::string python = given && *given ? given : "python3";
  std::vector<std::string> words = {python, "-c", kStart, module};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(python.c_str(), pointers.data());
  return fmt::format("[{}] {} does not start: {}; HEDDLE_PYTHON names a Python interpreter", command, python,
                     std::strerror(errno));
}

std::string hand_to_python(int argc, char** argv) {
  const std::string module = module_of({argv + 1, argv + std::max(argc, 1)});
  return module.empty() ? "" : become_python(argv[1], module, {argv + 2, argv + argc});
}

}  // namespace heddle
