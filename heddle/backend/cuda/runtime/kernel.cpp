#include "heddle/backend/cuda/runtime/kernel.h"

#include <array>

#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

// A launch as the driver takes it; it holds its attributes, so it is not copied.
struct Config {
  std::array<LaunchAttribute, 3> attributes;
  LaunchConfig config;

  Config(const Launch& launch, StreamHandle stream) {
    config.grid[0] = launch.grid;
    config.block[0] = launch.block;
    config.shared_bytes = launch.shared;
    config.stream = stream;
    config.attributes = attributes.data();
    if (launch.cluster > 1) {
      u32(&size)[3] = add(LaunchAttributeId::kClusterSize).size;
      size[0] = launch.cluster, size[1] = size[2] = 1;
    }
    if (launch.cooperative) add(LaunchAttributeId::kCooperative).flag = 1;
    if (launch.programmatic) add(LaunchAttributeId::kProgrammaticSerialization).flag = 1;
  }
  Config(const Config&) = delete;

 private:
  LaunchAttribute& add(LaunchAttributeId id) {
    LaunchAttribute& attribute = attributes[config.attribute_count++];
    attribute.id = id;
    return attribute;
  }
};

}  // namespace

KernelAttributes Kernel::attributes() const {
  const ContextScope scope(context_);
  const auto read = [&](FunctionAttribute which) {
    int value = 0;
    driver().function_get_attribute(&value, which, function_);
    return value;
  };
  return {read(FunctionAttribute::kRegisters), read(FunctionAttribute::kSharedBytes),
          read(FunctionAttribute::kMaxThreads)};
}

void Kernel::set_max_shared(int bytes) {
  const ContextScope scope(context_);
  const int status =
      driver().function_set_attribute.try_call(function_, FunctionAttribute::kMaxDynamicShared, bytes);
  if (status != kSuccess)
    fail(ErrorCode::kDevice,
         "[cuda] cuFuncSetAttribute: {}: {} bytes of shared memory for kernel {}, which has {} of its own",
         status_text(status), bytes, name_, attributes().shared_bytes);
}

int Kernel::occupancy(u32 threads, u32 shared) const {
  const ContextScope scope(context_);
  int blocks = 0;
  driver().occupancy(&blocks, function_, int(threads), shared);
  return blocks;
}

Module::Module(std::string_view cubin, const Device& device) {
  const ContextHandle context = device.context();
  const ContextScope scope(context);
  ModuleHandle module = nullptr;
  const int status = driver().module_load_data.try_call(&module, cubin.data());
  if (status != kSuccess)
    fail(ErrorCode::kDevice,
         "[cuda] cuModuleLoadData: {}: a program of {} bytes for {} ({}); the driver is for CUDA {}.{}",
         status_text(status), cubin.size(), device.name(), device.arch(), driver_version() / 1000,
         driver_version() % 1000 / 10);
  module_ = {context, module};
}

Kernel Module::kernel(const std::string& name) const {
  const ContextScope scope(module_.context());
  FunctionHandle function = nullptr;
  const int status = driver().module_get_function.try_call(&function, module_.get(), name.c_str());
  require(status != kErrorNotFound, "[cuda] the program has no kernel {}; is it extern \"C\"?", name);
  check_status(status, "cuModuleGetFunction");
  return {module_.context(), function, name};
}

std::span<std::byte> Module::global(const std::string& name) const {
  const ContextScope scope(module_.context());
  DevicePointer address = 0;
  size_t bytes = 0;
  const int status = driver().module_get_global.try_call(&address, &bytes, module_.get(), name.c_str());
  require(status != kErrorNotFound, "[cuda] the program has no variable {}; is it extern \"C\"?", name);
  check_status(status, "cuModuleGetGlobal");
  return {reinterpret_cast<std::byte*>(address), bytes};
}

void launch(const Kernel& kernel, const Launch& how, const Stream& stream,
            std::span<const void* const> args) {
  const ContextScope scope(stream.context());
  const Config config(how, stream.handle());
  // The driver reads the arguments and their list, and writes neither.
  void** const list = const_cast<void**>(args.data());
  const int status = driver().launch_kernel.try_call(&config.config, kernel.function_, list, nullptr);
  if (status != kSuccess)
    fail(ErrorCode::kDevice,
         "[cuda] cuLaunchKernelEx: {}: kernel {}, {} CTAs of {} threads in clusters of {}, {} bytes of "
         "shared memory{}",
         status_text(status), kernel.name(), how.grid, how.block, how.cluster, how.shared,
         how.cooperative ? ", cooperative" : "");
}

}  // namespace heddle::cuda
