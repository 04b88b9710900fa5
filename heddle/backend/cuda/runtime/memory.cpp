#include "heddle/backend/cuda/runtime/memory.h"

#include <cstring>

#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

DevicePointer address(const std::byte* data) {
  return reinterpret_cast<DevicePointer>(data);
}

// The status of an allocation, with what there is where it was too much.
void check_allocation(int status, const char* function, size_t bytes) {
  if (status != kErrorOutOfMemory) return check_status(status, function);
  size_t free = 0, total = 0;
  driver().memory_get_info.try_call(&free, &total);
  fail(ErrorCode::kDevice, "[cuda] {}: {}: {} bytes asked for; {} of {} are free, other processes counted",
       function, status_text(status), bytes, free, total);
}

}  // namespace

DeviceBuffer::DeviceBuffer(size_t bytes, const Device& device) : context_(device.context()), size_(bytes) {
  if (bytes == 0) return;
  const ContextScope scope(context_);
  check_allocation(driver().memory_alloc.try_call(&address_, bytes), "cuMemAlloc", bytes);
}

DeviceBuffer::DeviceBuffer(size_t bytes, const Stream& stream)
    : context_(stream.context()), stream_(stream.handle()), in_stream_order_(true), size_(bytes) {
  if (bytes == 0) return;
  const ContextScope scope(context_);
  check_allocation(driver().memory_alloc_async.try_call(&address_, bytes, stream_), "cuMemAllocAsync", bytes);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept {
  *this = std::move(other);
}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(stream_, other.stream_);
  std::swap(in_stream_order_, other.in_stream_order_);
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ == 0) return;
  try {
    const ContextScope scope(context_);
    if (in_stream_order_)
      driver().memory_free_async.try_call(address_, stream_);
    else
      driver().memory_free.try_call(address_);
  } catch (const std::exception&) {  // the context is gone, and its memory with it
  }
}

PinnedBuffer::PinnedBuffer(size_t bytes, const Device& device) : size_(bytes) {
  if (bytes == 0) return;
  const ContextHandle context = device.context();
  const ContextScope scope(context);
  void* memory = nullptr;
  check_allocation(driver().host_alloc.try_call(&memory, bytes, kHostPortable | kHostDeviceMap),
                   "cuMemHostAlloc", bytes);
  memory_ = {context, memory};
  std::memset(memory, 0, bytes);
  DevicePointer on_device = 0;
  driver().host_get_device_pointer(&on_device, memory, 0);
  device_data_ = reinterpret_cast<std::byte*>(on_device);
}

void upload(std::byte* device_to, const void* from, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  const ContextScope scope(stream.context());
  driver().copy_to_device(address(device_to), from, bytes, stream.handle());
}

void download(void* to, const std::byte* device_from, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  const ContextScope scope(stream.context());
  driver().copy_to_host(to, address(device_from), bytes, stream.handle());
}

void copy(std::byte* device_to, const std::byte* device_from, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  const ContextScope scope(stream.context());
  driver().copy_on_device(address(device_to), address(device_from), bytes, stream.handle());
}

void fill(std::byte* device_to, u8 value, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  const ContextScope scope(stream.context());
  driver().fill_bytes(address(device_to), value, bytes, stream.handle());
}

void fill_words(std::byte* device_to, u32 value, size_t words, const Stream& stream) {
  if (words == 0) return;
  const ContextScope scope(stream.context());
  driver().fill_words(address(device_to), value, words, stream.handle());
}

}  // namespace heddle::cuda
