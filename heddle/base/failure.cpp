#include "heddle/base/failure.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>
#include <typeinfo>

#include <cxxabi.h>
#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/memory.h"
#include "heddle/base/version.h"

namespace heddle {
namespace {

std::string type_of(const std::exception& failure) {
  const char* name = typeid(failure).name();
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return readable ? readable.get() : name;
}

std::string message_of_memory() {
  try {
    fail_memory(take_refused(), "this command");
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::string message_of(const std::exception& failure) {
  if (const auto* error = dynamic_cast<const Error*>(&failure)) return error->what();
  if (dynamic_cast<const std::bad_alloc*>(&failure)) return message_of_memory();
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&failure))
    return fmt::format("[{}] cannot be used: {}", file->path1().string(), file->code().message());
  if (const auto* system = dynamic_cast<const std::system_error*>(&failure))
    return fmt::format("[system] {}", system->code().message());
  return fmt::format("[heddle] a fault of heddle {} ({}); please report it with the command and its files",
                     build_name(), type_of(failure));
}

}  // namespace heddle
