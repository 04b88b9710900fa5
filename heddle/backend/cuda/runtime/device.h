// A GPU and its context. Everything of this folder that lives on a device remembers the context it was made in and
// makes it current for the length of each call, so that a thread's own current context is as before after every call.
#pragma once

#include <string>

#include "heddle/backend/cuda/runtime/driver.h"

namespace heddle::cuda {

class Device {
 public:
  // Throws Error(kUnsupported) where no GPU can be used, or this one cannot; Error(kInvalidArgument) where there is no
  // such ordinal. The object lives as long as the process.
  static const Device& at(int ordinal);
  static const Device& listed(int ordinal);    // also one that cannot be used
  static const Device& of_handle(int handle);  // the driver's
  static int count();                          // 0 where no GPU can be used

  // The caller's current context if it is one of this device, else the primary context, which is kept from then on.
  ContextHandle context() const;
  // The primary context, which is kept from then on. Programs and their memory are there.
  ContextHandle primary_context() const;

  int ordinal() const { return ordinal_; }
  const std::string& name() const { return name_; }
  const std::string& bus() const { return bus_; }  // PCI address: "00000000:3B:00.0"
  // The compiler's name of this GPU: "sm_80", "sm_89", "sm_120". From sm_90 on, it includes the features of this very
  // architecture where heddle uses them: "sm_90a", "sm_100a".
  const std::string& arch() const { return arch_; }
  int compute_major() const { return compute_major_; }
  int compute_minor() const { return compute_minor_; }
  int multiprocessors() const { return multiprocessors_; }
  int shared_per_block_optin() const { return shared_per_block_optin_; }        // bytes
  int shared_per_multiprocessor() const { return shared_per_multiprocessor_; }  // bytes
  int l2_bytes() const { return l2_bytes_; }
  int max_clock_khz() const { return max_clock_khz_; }
  i64 memory() const { return memory_; }              // bytes in all
  i64 memory_speed() const { return memory_speed_; }  // bytes a second by its clock; 0: not known

  int attribute(DeviceAttribute which) const;
  void synchronize() const;  // waits for everything of context()

 private:
  explicit Device(int ordinal);

  int ordinal_ = 0, handle_ = 0;
  std::string name_, bus_, arch_;
  int compute_major_ = 0, compute_minor_ = 0, multiprocessors_ = 0;
  int shared_per_block_optin_ = 0, shared_per_multiprocessor_ = 0, l2_bytes_ = 0, max_clock_khz_ = 0;
  i64 memory_ = 0, memory_speed_ = 0;
};

// The compiler's name of a compute capability: {9, 0} is "sm_90a".
std::string arch_name(int compute_major, int compute_minor);

// Free and total bytes of a device's memory at this moment, those of other processes included.
struct MemoryInfo {
  i64 free = 0, total = 0;
};
MemoryInfo memory_info(const Device& device);

// Makes a context current for a scope. After the scope, the context that was current before is current again.
class ContextScope {
 public:
  explicit ContextScope(ContextHandle context);
  explicit ContextScope(const Device& device) : ContextScope(device.context()) {}
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

 private:
  bool pushed_ = false;
};

}  // namespace heddle::cuda
