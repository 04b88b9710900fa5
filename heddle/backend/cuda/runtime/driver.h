// The CUDA driver as heddle calls it: libcuda.so.1, opened at run time. No CUDA header is needed to build; names,
// values and layouts below are those of the driver API (cuda.h of CUDA 12 and 13, which are the same here).
#pragma once

#include <cstddef>
#include <string>

#include "heddle/base/types.h"

namespace heddle::cuda {

using ContextHandle = struct CUctx_st*;
using ModuleHandle = struct CUmod_st*;
using FunctionHandle = struct CUfunc_st*;
using StreamHandle = struct CUstream_st*;
using EventHandle = struct CUevent_st*;
using GraphHandle = struct CUgraph_st*;
using GraphExecHandle = struct CUgraphExec_st*;
using DevicePointer = u64;

enum Status : int {  // CUresult
  kSuccess = 0,
  kErrorOutOfMemory = 2,
  kErrorNoDevice = 100,
  kErrorNotFound = 500,
  kErrorNotReady = 600,
  kErrorIllegalAddress = 700,
};

enum class DeviceAttribute : int {  // CUdevice_attribute
  kClockKilohertz = 13,
  kMultiprocessors = 16,
  kMemoryKilohertz = 36,
  kMemoryBits = 37,  // that a clock brings twice
  kL2Bytes = 38,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kSharedPerMultiprocessor = 81,
  kCooperativeLaunch = 95,
  kSharedPerBlockOptin = 97,
  kPageableMemoryAccess = 88,
  kMemoryPools = 115,
  kTensorMaps = 127,
};

enum class FunctionAttribute : int {  // CUfunction_attribute
  kMaxThreads = 0,
  kSharedBytes = 1,
  kRegisters = 4,
  kMaxDynamicShared = 8,
  kLargeClusters = 14,  // more than 8 CTAs
};

enum class PointerAttribute : int { kMemoryType = 2, kDeviceOrdinal = 9 };  // CUpointer_attribute
constexpr int kDeviceMemory = 2;                                            // CU_MEMORYTYPE_DEVICE

enum class LaunchAttributeId : int {  // CUlaunchAttributeID
  kCooperative = 2,
  kClusterSize = 4,
  kProgrammaticSerialization = 6,
};

struct alignas(8) LaunchAttribute {  // CUlaunchAttribute
  LaunchAttributeId id = {};
  int reserved = 0;
  union {
    u32 words[16] = {};  // as many as the driver reads
    int flag;
    u32 size[3];  // kClusterSize, CTAs
  };
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {  // CUlaunchConfig
  u32 grid[3] = {1, 1, 1};
  u32 block[3] = {1, 1, 1};
  u32 shared_bytes = 0;
  StreamHandle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  u32 attribute_count = 0;
};
static_assert(sizeof(LaunchConfig) == 56);

constexpr u32 kStreamNonBlocking = 1;
constexpr u32 kEventDisableTiming = 2;
constexpr u32 kHostPortable = 1, kHostDeviceMap = 2;
enum class CaptureMode : int { kGlobal, kThreadLocal, kRelaxed };  // CUstreamCaptureMode
enum class CaptureStatus : int { kNone, kActive, kInvalidated };   // CUstreamCaptureStatus

// "CUDA_ERROR_X (what it means)".
std::string status_text(int status);
// Throws Error(kDevice) that names the function, the error and its text, unless `status` is kSuccess.
void check_status(int status, const char* function);

class DriverLibrary;

// One function of the driver.
template <class... Args>
class DriverCall {
 public:
  DriverCall(DriverLibrary& library, const char* symbol);
  // Throws Error(kDevice) where the call fails.
  void operator()(Args... args) const { check_status(address_(args...), symbol_); }
  // The call's own result, for those whose failure is an answer, and for destructors.
  int try_call(Args... args) const { return address_(args...); }

 private:
  const char* symbol_;
  int (*address_)(Args...);
};

// libcuda.so.1 while its functions are looked up.
class DriverLibrary {
 public:
  DriverLibrary();
  void* find(const char* symbol);  // null, and remembered, where there is none
  bool is_open() const { return handle_ != nullptr; }
  const std::string& why_not() const { return why_not_; }  // empty: the library is open and complete so far

 private:
  void* handle_ = nullptr;
  std::string why_not_;
};

template <class... Args>
DriverCall<Args...>::DriverCall(DriverLibrary& library, const char* symbol)
    : symbol_(symbol), address_(reinterpret_cast<int (*)(Args...)>(library.find(symbol))) {}

// The functions that heddle calls. Names without the prefix and version; argument types as the driver has them.
struct Driver {
  template <class... Args>
  using Call = DriverCall<Args...>;

  DriverLibrary library;

  Call<u32> init{library, "cuInit"};
  Call<int*> driver_get_version{library, "cuDriverGetVersion"};
  Call<int, const char**> get_error_name{library, "cuGetErrorName"};
  Call<int, const char**> get_error_string{library, "cuGetErrorString"};

  Call<int*> device_get_count{library, "cuDeviceGetCount"};
  Call<int*, int> device_get{library, "cuDeviceGet"};
  Call<char*, int, int> device_get_name{library, "cuDeviceGetName"};
  Call<size_t*, int> device_total_mem{library, "cuDeviceTotalMem_v2"};
  Call<int*, DeviceAttribute, int> device_get_attribute{library, "cuDeviceGetAttribute"};
  Call<char*, int, int> device_get_bus{library, "cuDeviceGetPCIBusId"};

  Call<ContextHandle*, int> primary_context_retain{library, "cuDevicePrimaryCtxRetain"};
  Call<ContextHandle*> context_get_current{library, "cuCtxGetCurrent"};
  Call<ContextHandle> context_push_current{library, "cuCtxPushCurrent_v2"};
  Call<ContextHandle*> context_pop_current{library, "cuCtxPopCurrent_v2"};
  Call<int*> context_get_device{library, "cuCtxGetDevice"};
  Call<ContextHandle, unsigned long long*> context_get_id{library, "cuCtxGetId"};
  Call<> context_synchronize{library, "cuCtxSynchronize"};
  // For tests: a caller with a context of its own.
  Call<ContextHandle*, u32, int> context_create{library, "cuCtxCreate_v2"};
  Call<ContextHandle> context_destroy{library, "cuCtxDestroy_v2"};

  Call<StreamHandle*, u32> stream_create{library, "cuStreamCreate"};
  Call<StreamHandle> stream_destroy{library, "cuStreamDestroy_v2"};
  Call<StreamHandle> stream_synchronize{library, "cuStreamSynchronize"};
  Call<StreamHandle> stream_query{library, "cuStreamQuery"};
  Call<StreamHandle, ContextHandle*> stream_get_context{library, "cuStreamGetCtx"};
  Call<StreamHandle, EventHandle, u32> stream_wait_event{library, "cuStreamWaitEvent"};
  Call<StreamHandle, CaptureMode> stream_begin_capture{library, "cuStreamBeginCapture_v2"};
  Call<StreamHandle, GraphHandle*> stream_end_capture{library, "cuStreamEndCapture"};
  Call<CaptureMode*> exchange_capture_mode{library, "cuThreadExchangeStreamCaptureMode"};
  Call<StreamHandle, CaptureStatus*> stream_is_capturing{library, "cuStreamIsCapturing"};

  Call<EventHandle*, u32> event_create{library, "cuEventCreate"};
  Call<EventHandle> event_destroy{library, "cuEventDestroy_v2"};
  Call<EventHandle, StreamHandle> event_record{library, "cuEventRecord"};
  Call<EventHandle> event_synchronize{library, "cuEventSynchronize"};
  Call<EventHandle> event_query{library, "cuEventQuery"};
  Call<float*, EventHandle, EventHandle> event_elapsed_time{library, "cuEventElapsedTime"};

  Call<size_t*, size_t*> memory_get_info{library, "cuMemGetInfo_v2"};
  Call<DevicePointer*, size_t> memory_alloc{library, "cuMemAlloc_v2"};
  Call<DevicePointer> memory_free{library, "cuMemFree_v2"};
  Call<DevicePointer*, size_t, StreamHandle> memory_alloc_async{library, "cuMemAllocAsync"};
  Call<DevicePointer, StreamHandle> memory_free_async{library, "cuMemFreeAsync"};
  Call<void**, size_t, u32> host_alloc{library, "cuMemHostAlloc"};
  Call<void*> host_free{library, "cuMemFreeHost"};
  Call<DevicePointer*, void*, u32> host_get_device_pointer{library, "cuMemHostGetDevicePointer_v2"};
  Call<void*, PointerAttribute, DevicePointer> pointer_get_attribute{library, "cuPointerGetAttribute"};
  Call<DevicePointer, const void*, size_t, StreamHandle> copy_to_device{library, "cuMemcpyHtoDAsync_v2"};
  Call<void*, DevicePointer, size_t, StreamHandle> copy_to_host{library, "cuMemcpyDtoHAsync_v2"};
  Call<DevicePointer, DevicePointer, size_t, StreamHandle> copy_on_device{library, "cuMemcpyDtoDAsync_v2"};
  Call<DevicePointer, u8, size_t, StreamHandle> fill_bytes{library, "cuMemsetD8Async"};
  Call<DevicePointer, u32, size_t, StreamHandle> fill_words{library, "cuMemsetD32Async"};

  Call<ModuleHandle*, const void*> module_load_data{library, "cuModuleLoadData"};
  Call<ModuleHandle> module_unload{library, "cuModuleUnload"};
  Call<FunctionHandle*, ModuleHandle, const char*> module_get_function{library, "cuModuleGetFunction"};
  Call<DevicePointer*, size_t*, ModuleHandle, const char*> module_get_global{library, "cuModuleGetGlobal_v2"};
  Call<int*, FunctionAttribute, FunctionHandle> function_get_attribute{library, "cuFuncGetAttribute"};
  Call<FunctionHandle, FunctionAttribute, int> function_set_attribute{library, "cuFuncSetAttribute"};
  Call<int*, FunctionHandle, int, size_t> occupancy{library, "cuOccupancyMaxActiveBlocksPerMultiprocessor"};
  Call<const LaunchConfig*, FunctionHandle, void**, void**> launch_kernel{library, "cuLaunchKernelEx"};

  // Map, type of its elements, rank, address, sizes, strides in bytes but the first, box, steps between elements, interleave,
  // swizzle, promotion in L2, what is read outside of the tensor.
  Call<void*, int, u32, void*, const u64*, const u64*, const u32*, const u32*, int, int, int, int>
      encode_tensor_map{library, "cuTensorMapEncodeTiled"};

  Call<GraphExecHandle*, GraphHandle, u64> graph_instantiate{library, "cuGraphInstantiateWithFlags"};
  Call<GraphHandle> graph_destroy{library, "cuGraphDestroy"};
  Call<GraphExecHandle> graph_exec_destroy{library, "cuGraphExecDestroy"};
  Call<GraphExecHandle, StreamHandle> graph_launch{library, "cuGraphLaunch"};
};

// The driver, initialised. Throws Error(kUnsupported) with why_unavailable() where there is none.
const Driver& driver();

// Returns why no GPU can be used here (no libcuda, one that is too old, or no device), or "" where one can.
// Worked out once.
const std::string& why_unavailable();
// Returns why one of several GPUs cannot be used (it is too old, or does not answer), or "" where it can.
const std::string& why_device_unusable(int ordinal);

// CUDA version that the driver supports, as 1000 * major + 10 * minor; 0 where there is no driver.
int driver_version();

}  // namespace heddle::cuda
