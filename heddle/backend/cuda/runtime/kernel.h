// Compiled programs on a device, and how their kernels are launched.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "heddle/backend/cuda/runtime/stream.h"

namespace heddle::cuda {

// The shape of a launch. Grid and block have one dimension.
struct Launch {
  u32 grid = 1;              // CTAs
  u32 block = 1;             // threads a CTA
  u32 cluster = 1;           // CTAs that share memory on chip; the grid is a multiple
  u32 shared = 0;            // dynamic shared memory, bytes; above 48 KB after Kernel::set_max_shared
  bool cooperative = false;  // refuse unless the whole grid fits on the device at once
  bool programmatic =
      false;  // may begin before the previous kernel on the stream is done; waits where it says so
              // (griddepcontrol.wait)
};

struct KernelAttributes {
  int registers = 0;     // a thread
  int shared_bytes = 0;  // static, a CTA
  int max_threads = 0;   // a CTA
};

// One kernel of a module, which outlives it.
class Kernel {
 public:
  const std::string& name() const { return name_; }
  KernelAttributes attributes() const;
  // Allows `bytes` of dynamic shared memory.
  void set_max_shared(int bytes);
  // CTAs of `threads` threads with `shared` bytes of dynamic shared memory that fit on one multiprocessor at once.
  int occupancy(u32 threads, u32 shared) const;

 private:
  friend class Module;
  friend void launch(const Kernel&, const Launch&, const Stream&, std::span<const void* const>);
  Kernel(ContextHandle context, FunctionHandle function, std::string name)
      : context_(context), function_(function), name_(std::move(name)) {}

  ContextHandle context_;
  FunctionHandle function_;
  std::string name_;
};

// A cubin, loaded. Throws Error(kDevice) where the device does not take it.
class Module {
 public:
  explicit Module(std::string_view cubin, const Device& device);

  Kernel kernel(const std::string& name) const;  // throws Error(kInvalidArgument) where there is none
  // Address and bytes of a __device__ variable with C linkage.
  std::span<std::byte> global(const std::string& name) const;

 private:
  Handle<ModuleHandle, &Driver::module_unload> module_;
};

// Puts a kernel on a stream. `args` are addresses of the arguments, which are copied before it returns. Works inside
// graph capture, programmatic launches included.
void launch(const Kernel& kernel, const Launch& how, const Stream& stream, std::span<const void* const> args);

}  // namespace heddle::cuda
