// Replaces libcuda.so.1: two emulated GPUs of compute capability 9.0, whose programs are shared libraries made
// by libnvrtc.cpp. A kernel runs in parallel with the host until its stream gets another operation; all other
// operations run at once. Captured operations run when their graph is launched. On a stream that is made while
// EMULATED_GPU_LATE is set, all operations run when the host waits for them and no earlier, and one that leaves its
// allocation makes the stream fail.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heddle/backend/cuda/runtime/driver.h"
#include "tests/emulated_gpu/device.h"
#include "tests/emulated_gpu/stream.h"

namespace {

using namespace heddle;
using namespace heddle::cuda;
using emulated::Context, emulated::Stream, emulated::Operation;

struct DeviceKind {
  const char* name;
  int multiprocessors;
};

// H200s that run nothing: code compiled for them has the key that a real H200 asks for
#ifdef EMULATED_GPU_STILL
constexpr bool kRuns = false;
constexpr DeviceKind kDevices[] = {{"emulated GPU", 132}, {"emulated GPU", 132}};
constexpr size_t kMemory = size_t{139} << 30;
#else
constexpr bool kRuns = true;
constexpr DeviceKind kDevices[] = {{"emulated GPU", 16}, {"small emulated GPU", 8}};
constexpr size_t kMemory = size_t{4} << 30;
#endif
constexpr int kDeviceCount = int(std::size(kDevices));
constexpr int kInvalidValue = 1, kInvalidDevice = 101, kInvalidContext = 201, kInvalidHandle = 400;
constexpr size_t kGuard = 256;  // guard bytes before and after an allocation that nothing may write
constexpr u8 kUntouched = 0xa5;

using Bind = emulated::Work* (*)(void** args);
using Run = void (*)(emulated::Work* kernel, const u32* how, emulated::Stacks* stacks);

class KeptStacks : public emulated::Stacks {
 public:
  static KeptStacks& all() {
    static auto& kept = *new KeptStacks;  // launches may outlive statics
    return kept;
  }
  unsigned char* take() override {
    const std::lock_guard lock(mutex_);
    if (free_.empty())
      return static_cast<unsigned char*>(::mmap(nullptr, emulated::kStacksBytes, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    unsigned char* stacks = free_.back();
    free_.pop_back();
    return stacks;
  }
  void give(unsigned char* stacks) override {
    const std::lock_guard lock(mutex_);
    free_.push_back(stacks);
  }

 private:
  std::mutex mutex_;
  std::vector<unsigned char*> free_;
};

struct Module {
  void* library;
  Context* context;
};
struct Function {
  Bind bind;
  Run run;
  Context* context;  // it may be launched there alone
};
struct Graph {
  std::vector<Operation> work;
};
struct Event {
  Context* context;  // only its streams may record it
  Stream* stream = nullptr;
  u64 put = 0;  // operations of the stream before it
  std::chrono::steady_clock::time_point time;
};

// Neither has a destructor: the program may call until its very end.
auto& default_stream = *new Stream;
thread_local std::array<ContextHandle, 16> contexts;
thread_local size_t num_contexts = 0;
Context primary_contexts[kDeviceCount] = {{1, 0}, {2, 1}};
std::atomic<unsigned long long> num_made = kDeviceCount;  // contexts
auto& live_contexts = *new std::set<Context*>{&primary_contexts[0], &primary_contexts[1]};
auto& live_contexts_mutex = *new std::mutex;

struct Allocation {
  size_t bytes;
  int device;
};
// All allocations, by address, for queries about pointers; and what they leave of each device's memory.
auto& allocations = *new std::map<DevicePointer, Allocation>;
size_t free_bytes[kDeviceCount] = {kMemory, kMemory};
auto& allocations_mutex = *new std::mutex;

auto& page_locked = *new std::map<const u8*, size_t>;  // memory of the host: address and bytes
bool is_page_locked(const void* address) {
  const std::lock_guard lock(allocations_mutex);
  const auto after = page_locked.upper_bound(static_cast<const u8*>(address));
  if (after == page_locked.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return static_cast<const u8*>(address) < begin + bytes;
}

// The allocation that an address lies in, and where it begins; null: there is none. `allocations_mutex` is held.
const std::pair<const DevicePointer, Allocation>* allocation_of(DevicePointer address) {
  const auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) return nullptr;
  const auto& found = *std::prev(after);
  return address < found.first + std::max<size_t>(found.second.bytes, 1) ? &found : nullptr;
}

Stream& stream_of(StreamHandle handle) {
  return handle ? *reinterpret_cast<Stream*>(handle) : default_stream;
}
Context* current_context() {
  return num_contexts == 0 ? nullptr : reinterpret_cast<Context*>(contexts[num_contexts - 1]);
}
// Refuses a stream of another context than the current one, as the driver does.
int put(StreamHandle handle, Operation work) {
  Stream& stream = stream_of(handle);
  if (!current_context()) return kInvalidContext;
  if (stream.context && stream.context != current_context()) return kInvalidHandle;
  if (stream.capturing) return stream.captured.push_back(std::move(work)), kSuccess;
  if (stream.late) {
    const std::lock_guard lock(stream.mutex);
    stream.waiting.push_back(std::move(work));
    ++stream.put;
    return kSuccess;
  }
  stream.finish();
  work();
  return kSuccess;
}
// A copy that reads or writes an allocation.
int put_copy(StreamHandle handle, DevicePointer address, size_t bytes, Operation work) {
  Stream& stream = stream_of(handle);
  if (!stream.late) return put(handle, std::move(work));
  return put(handle, [&stream, address, bytes, work = std::move(work)] {
    const std::lock_guard lock(allocations_mutex);
    const auto* const found = allocation_of(address);
    if (!found || address + bytes > found->first + found->second.bytes)
      stream.status = kErrorIllegalAddress;
    else
      work();
  });
}
void* pointer(DevicePointer address) {
  return reinterpret_cast<void*>(address);
}

// EMULATED_GPU_OLD lists GPUs that are too old to be used: "0".
bool is_old(int device) {
  const char* old = std::getenv("EMULATED_GPU_OLD");
  return old && std::strchr(old, '0' + device);
}

int attribute(DeviceAttribute which, int device) {
  switch (which) {
    case DeviceAttribute::kClockKilohertz:
      return 1'000'000;  // a tick is a nanosecond
    case DeviceAttribute::kMultiprocessors:
      return kDevices[device].multiprocessors;
    case DeviceAttribute::kMemoryKilohertz:  // as an H200
      return 3'201'000;
    case DeviceAttribute::kMemoryBits:
      return 6144;
    case DeviceAttribute::kL2Bytes:
      return 1 << 20;
    case DeviceAttribute::kComputeMajor:
      return is_old(device) ? 7 : 9;
    case DeviceAttribute::kSharedPerMultiprocessor:
      return 233472;
    case DeviceAttribute::kSharedPerBlockOptin:
      return 232448;
    case DeviceAttribute::kCooperativeLaunch:
    case DeviceAttribute::kMemoryPools:
      return 1;
    default:
      return 0;
  }
}

template <class T>
int set(T* to, T value) {
  *to = value;
  return kSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {

int cuInit(u32) {
  return kSuccess;
}
// NVRTC asks for it if it finds a driver, and works without it.
int cuGetExportTable(const void**, const void*) {
  return kErrorNotFound;
}
int cuDriverGetVersion(int* version) {
  return set(version, 13000);
}
int cuGetErrorName(int, const char** text) {
  return set(text, "EMULATED_GPU_ERROR");
}
int cuGetErrorString(int, const char** text) {
  return set(text, "the emulated GPU cannot do this");
}

int cuDeviceGetCount(int* count) {
  return set(count, kDeviceCount);
}
int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= kDeviceCount) return kInvalidDevice;
  return set(device, ordinal);
}
int cuDeviceGetName(char* name, int size, int device) {
  std::strncpy(name, kDevices[device].name, size_t(size));
  return kSuccess;
}
int cuDeviceGetPCIBusId(char* bus, int size, int device) {
  std::snprintf(bus, size_t(size), "00000000:%02X:00.0", device);
  return kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  return set(bytes, kMemory);
}
int cuDeviceGetAttribute(int* value, DeviceAttribute which, int device) {
  return set(value, attribute(which, device));
}

int cuDevicePrimaryCtxRetain(ContextHandle* handle, int device) {
  return set(handle, reinterpret_cast<ContextHandle>(&primary_contexts[device]));
}
int cuCtxGetCurrent(ContextHandle* handle) {
  return set(handle, num_contexts == 0 ? ContextHandle{} : contexts[num_contexts - 1]);
}
int cuCtxPushCurrent_v2(ContextHandle handle) {
  if (num_contexts == contexts.size()) return kInvalidValue;
  const std::lock_guard lock(live_contexts_mutex);
  if (!live_contexts.contains(reinterpret_cast<Context*>(handle))) return kInvalidContext;
  contexts[num_contexts++] = handle;
  return kSuccess;
}
int cuCtxPopCurrent_v2(ContextHandle* handle) {
  if (num_contexts == 0) return kInvalidValue;
  return set(handle, contexts[--num_contexts]);
}
int cuCtxGetDevice(int* device) {
  if (!current_context()) return kInvalidContext;
  return set(device, current_context()->device);
}
int cuCtxSynchronize() {
  return default_stream.finish(), kSuccess;
}
// It is current from then on.
int cuCtxCreate_v2(ContextHandle* handle, u32, int device) {
  auto* const made = new Context{++num_made, device};
  {
    const std::lock_guard lock(live_contexts_mutex);
    live_contexts.insert(made);
  }
  set(handle, reinterpret_cast<ContextHandle>(made));
  return cuCtxPushCurrent_v2(*handle);
}
int cuCtxDestroy_v2(ContextHandle handle) {
  if (current_context() == reinterpret_cast<Context*>(handle)) --num_contexts;
  const std::lock_guard lock(live_contexts_mutex);
  live_contexts.erase(reinterpret_cast<Context*>(handle));
  delete reinterpret_cast<Context*>(handle);
  return kSuccess;
}
int cuCtxGetId(ContextHandle handle, unsigned long long* id) {
  return set(id, reinterpret_cast<Context*>(handle)->id);
}

int cuStreamCreate(StreamHandle* handle, u32) {
  if (!current_context()) return kInvalidContext;
  return set(handle, reinterpret_cast<StreamHandle>(new Stream{.context = current_context()}));
}
int cuStreamGetCtx(StreamHandle handle, ContextHandle* context) {
  Context* const own = stream_of(handle).context;
  return set(context, reinterpret_cast<ContextHandle>(own ? own : current_context()));
}
int cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  static thread_local CaptureMode current = CaptureMode::kGlobal;
  std::swap(current, *mode);
  return kSuccess;
}
int cuStreamDestroy_v2(StreamHandle handle) {
  reinterpret_cast<Stream*>(handle)->finish();
  delete reinterpret_cast<Stream*>(handle);
  return kSuccess;
}
int cuStreamSynchronize(StreamHandle handle) {
  Stream& stream = stream_of(handle);
  stream.finish();
  return stream.status;
}
int cuStreamQuery(StreamHandle handle) {
  const Stream& stream = stream_of(handle);
  return stream.busy || stream.run < stream.put ? kErrorNotReady : stream.status.load();
}
int cuStreamWaitEvent(StreamHandle handle, EventHandle event, u32) {
  const Event& of = *reinterpret_cast<Event*>(event);
  if (!of.stream || !of.stream->late) return kSuccess;
  return put(handle, [stream = of.stream, count = of.put] { stream->run_to(count); });
}
int cuStreamBeginCapture_v2(StreamHandle handle, CaptureMode) {
  stream_of(handle).capturing = true;
  return kSuccess;
}
int cuStreamEndCapture(StreamHandle handle, GraphHandle* graph) {
  Stream& stream = stream_of(handle);
  if (!stream.capturing) return kInvalidValue;
  stream.capturing = false;
  return set(graph, reinterpret_cast<GraphHandle>(new Graph{std::exchange(stream.captured, {})}));
}
int cuStreamIsCapturing(StreamHandle handle, CaptureStatus* status) {
  return set(status, stream_of(handle).capturing ? CaptureStatus::kActive : CaptureStatus::kNone);
}
int cuGraphInstantiateWithFlags(GraphExecHandle* exec, GraphHandle graph, u64) {
  return set(exec, reinterpret_cast<GraphExecHandle>(new Graph(*reinterpret_cast<Graph*>(graph))));
}
int cuGraphDestroy(GraphHandle graph) {
  delete reinterpret_cast<Graph*>(graph);
  return kSuccess;
}
int cuGraphExecDestroy(GraphExecHandle exec) {
  delete reinterpret_cast<Graph*>(exec);
  return kSuccess;
}
int cuGraphLaunch(GraphExecHandle exec, StreamHandle handle) {
  for (const Operation& work : reinterpret_cast<Graph*>(exec)->work) put(handle, work);
  return kSuccess;
}

int cuEventCreate(EventHandle* event, u32) {
  return set(event, reinterpret_cast<EventHandle>(new Event{.context = current_context()}));
}
int cuEventDestroy_v2(EventHandle event) {
  delete reinterpret_cast<Event*>(event);
  return kSuccess;
}
int cuEventRecord(EventHandle event, StreamHandle stream) {
  if (reinterpret_cast<Event*>(event)->context != current_context()) return kInvalidHandle;
  Event& of = *reinterpret_cast<Event*>(event);
  of.stream = &stream_of(stream), of.put = of.stream->put.load();
  if (of.stream->late) return kSuccess;
  return put(stream, [&of] { of.time = std::chrono::steady_clock::now(); });
}
int cuEventSynchronize(EventHandle event) {
  const Event& of = *reinterpret_cast<Event*>(event);
  if (!of.stream || !of.stream->late) return kSuccess;
  of.stream->run_to(of.put);
  return of.stream->status;
}
int cuEventQuery(EventHandle event) {
  const Event& of = *reinterpret_cast<Event*>(event);
  if (!of.stream || !of.stream->late) return kSuccess;
  return of.stream->run < of.put ? kErrorNotReady : of.stream->status.load();
}
int cuEventElapsedTime(float* milliseconds, EventHandle begin, EventHandle end) {
  const auto time = reinterpret_cast<Event*>(end)->time - reinterpret_cast<Event*>(begin)->time;
  return set(milliseconds, std::chrono::duration<float, std::milli>(time).count());
}

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  if (!current_context()) return kInvalidContext;
  const std::lock_guard lock(allocations_mutex);
  return set(free, free_bytes[current_context()->device]), set(total, kMemory);
}
int cuMemAlloc_v2(DevicePointer* address, size_t bytes) {
  if (!current_context()) return kInvalidContext;
  auto* block =
      static_cast<u8*>(std::aligned_alloc(kGuard, (bytes + kGuard - 1) / kGuard * kGuard + 2 * kGuard));
  if (!block) return kErrorOutOfMemory;
  std::memcpy(block, &bytes, sizeof bytes);
  std::memset(block + sizeof bytes, kUntouched, kGuard - sizeof bytes);
  std::memset(block + kGuard + bytes, kUntouched, kGuard);
  const auto begin = reinterpret_cast<DevicePointer>(block + kGuard);
  const std::lock_guard lock(allocations_mutex);
  const int device = current_context()->device;
  allocations[begin] = {bytes, device};
  free_bytes[device] -= bytes;
  return set(address, begin);
}
int cuMemFree_v2(DevicePointer address) {
  {
    const std::lock_guard lock(allocations_mutex);
    const auto [bytes, device] = allocations.at(address);
    free_bytes[device] += bytes;
    allocations.erase(address);
  }
  auto* block = static_cast<u8*>(pointer(address)) - kGuard;
  size_t bytes = 0;
  std::memcpy(&bytes, block, sizeof bytes);
  const auto untouched = [](u8 value) { return value == kUntouched; };
  if (!std::all_of(block + sizeof bytes, block + kGuard, untouched) ||
      !std::all_of(block + kGuard + bytes, block + 2 * kGuard + bytes, untouched)) {
    std::fprintf(stderr, "emulated GPU: a kernel wrote outside of an allocation of %zu bytes\n", bytes);
    std::abort();
  }
  std::free(block);
  return kSuccess;
}
int cuPointerGetAttribute(void* value, PointerAttribute which, DevicePointer address) {
  const std::lock_guard lock(allocations_mutex);
  const auto* const found = allocation_of(address);
  if (!found) return kInvalidValue;
  const bool type = which == PointerAttribute::kMemoryType;
  return set(static_cast<int*>(value), type ? kDeviceMemory : found->second.device);
}
int cuMemAllocAsync(DevicePointer* address, size_t bytes, StreamHandle) {
  return cuMemAlloc_v2(address, bytes);
}
int cuMemFreeAsync(DevicePointer address, StreamHandle) {
  return cuMemFree_v2(address);
}
int cuMemHostAlloc(void** memory, size_t bytes, u32) {
  set(memory, std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  const std::lock_guard lock(allocations_mutex);
  page_locked[static_cast<const u8*>(*memory)] = bytes;
  return kSuccess;
}
int cuMemFreeHost(void* memory) {
  const std::lock_guard lock(allocations_mutex);
  page_locked.erase(static_cast<const u8*>(memory));
  std::free(memory);
  return kSuccess;
}
int cuMemHostGetDevicePointer_v2(DevicePointer* address, void* memory, u32) {
  return set(address, reinterpret_cast<DevicePointer>(memory));
}
int cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, StreamHandle stream) {
  if (!stream_of(stream).late || is_page_locked(from))
    return put_copy(stream, to, bytes, [=] { std::memcpy(pointer(to), from, bytes); });
  const auto* begin = static_cast<const u8*>(from);
  std::vector<u8> staged(begin, begin + bytes);  // as the driver does with other memory of the host
  return put_copy(stream, to, bytes, [to, staged = std::move(staged)] {
    std::memcpy(pointer(to), staged.data(), staged.size());
  });
}
int cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, StreamHandle stream) {
  return put_copy(stream, from, bytes, [=] { std::memcpy(to, pointer(from), bytes); });
}
int cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, StreamHandle stream) {
  return put_copy(stream, to, bytes, [=] { std::memcpy(pointer(to), pointer(from), bytes); });
}
int cuMemsetD8Async(DevicePointer to, u8 value, size_t bytes, StreamHandle stream) {
  return put(stream, [=] { std::memset(pointer(to), value, bytes); });
}
int cuMemsetD32Async(DevicePointer to, u32 value, size_t words, StreamHandle stream) {
  return put(stream, [=] { std::fill_n(static_cast<u32*>(pointer(to)), words, value); });
}

// The image contains its length: an ELF file ends with its section headers.
int cuModuleLoadData(ModuleHandle* module, const void* image) {
  if (!kRuns) return set(module, reinterpret_cast<ModuleHandle>(new Module{nullptr, current_context()}));
  const auto* bytes = static_cast<const char*>(image);
  u64 sections = 0;
  u16 section_bytes = 0, section_count = 0;
  std::memcpy(&sections, bytes + 40, 8);
  std::memcpy(&section_bytes, bytes + 58, 2);
  std::memcpy(&section_count, bytes + 60, 2);
  const size_t size = sections + size_t{section_bytes} * section_count;
  std::string path = "/tmp/emulated_cubin_XXXXXX";  // the loader reuses a library whose name it knows
  const int file = ::mkstemp(path.data());
  const bool written = file >= 0 && ::write(file, image, size) == ssize_t(size);
  void* library = written ? ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  ::close(file);
  ::unlink(path.c_str());
  if (!library) return kInvalidValue;
  return set(module, reinterpret_cast<ModuleHandle>(new Module{library, current_context()}));
}
int cuModuleUnload(ModuleHandle handle) {
  auto* module = reinterpret_cast<Module*>(handle);
  if (module->library) ::dlclose(module->library);
  delete module;
  return kSuccess;
}
int cuModuleGetFunction(FunctionHandle* function, ModuleHandle handle, const char* name) {
  if (!kRuns) return set(function, reinterpret_cast<FunctionHandle>(new Function{}));
  void* library = reinterpret_cast<Module*>(handle)->library;
  const auto bind = reinterpret_cast<Bind>(::dlsym(library, (std::string("emulated_bind_") + name).c_str()));
  const auto run = reinterpret_cast<Run>(::dlsym(library, "emulated_run"));
  if (!bind || !run) return kErrorNotFound;
  return set(function, reinterpret_cast<FunctionHandle>(
                           new Function{bind, run, reinterpret_cast<Module*>(handle)->context}));
}
int cuModuleGetGlobal_v2(DevicePointer*, size_t*, ModuleHandle, const char*) {
  return kErrorNotFound;
}
int cuFuncGetAttribute(int* value, FunctionAttribute which, FunctionHandle) {
  return set(value, which == FunctionAttribute::kMaxThreads    ? 1024
                    : which == FunctionAttribute::kSharedBytes ? 1024
                                                               : 0);
}
int cuFuncSetAttribute(FunctionHandle, FunctionAttribute, int) {
  return kSuccess;
}
// It has no tensor maps, and says so (DeviceAttribute::kTensorMaps).
int cuTensorMapEncodeTiled(void*, ...) {
  return kInvalidValue;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* ctas, FunctionHandle, int, size_t) {
  return set(ctas, 1);
}

int cuLaunchKernelEx(const LaunchConfig* config, FunctionHandle handle, void** args, void**) {
  if (!kRuns) return kSuccess;
  const auto& function = *reinterpret_cast<Function*>(handle);
  Stream& stream = stream_of(config->stream);
  if (!current_context()) return kInvalidContext;
  if (function.context != current_context() || (stream.context && stream.context != function.context))
    return kInvalidHandle;
  bool cooperative = false;
  u32 cluster = 1;
  for (u32 i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    cooperative |= attribute.id == LaunchAttributeId::kCooperative && attribute.flag;
    if (attribute.id == LaunchAttributeId::kClusterSize) cluster = attribute.size[0];
  }
  constexpr u32 kMostCluster = 16;
  if (cluster == 0 || cluster > kMostCluster || config->grid[0] % cluster != 0) return kInvalidValue;
  if (cooperative && config->grid[0] > u32(kDevices[function.context->device].multiprocessors))
    return kInvalidValue;
  const u32 at_once = cooperative ? config->grid[0] : std::min(2u, std::thread::hardware_concurrency());
  const std::shared_ptr<emulated::Work> kernel(function.bind(args));
  const std::array<u32, 5> how = {config->grid[0], config->block[0], config->shared_bytes, at_once, cluster};
  Operation work = [run = function.run, kernel, how] { run(kernel.get(), how.data(), &KeptStacks::all()); };
  if (stream.capturing)
    stream.captured.push_back(std::move(work));
  else
    stream.launch(std::move(work));
  return kSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
