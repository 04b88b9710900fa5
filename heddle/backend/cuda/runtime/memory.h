// Memory of a device and of the host, and copies between them. Buffers are move-only; sizes are bytes; device
// addresses are std::byte* that the host must not follow. All throw Error(kDevice).
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "heddle/backend/cuda/runtime/stream.h"

namespace heddle::cuda {

// Memory of a device; what it holds is not defined. 0 bytes are no allocation: data() is null.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(size_t bytes, const Device& device);
  // Allocates and frees in the order of a stream. Later work on the stream may use the buffer; the buffer is freed
  // after all work that is on the stream when it is destroyed. Works inside graph capture. The stream outlives the
  // buffer.
  DeviceBuffer(size_t bytes, const Stream& stream);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  size_t size() const { return size_; }

 private:
  ContextHandle context_ = nullptr;
  StreamHandle stream_ = nullptr;
  bool in_stream_order_ = false;
  DevicePointer address_ = 0;
  size_t size_ = 0;
};

// Page-locked memory of the host, which the device reads and writes in place. It begins as zeros.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(size_t bytes, const Device& device);

  std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }  // for the host
  std::byte* device_data() const { return device_data_; }                     // for kernels: the same bytes
  size_t size() const { return size_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }

 private:
  Handle<void*, &Driver::host_free> memory_;
  std::byte* device_data_ = nullptr;
  size_t size_ = 0;
};

// Copies and fills in the order of a stream. With pinned host memory they return at once, and the host's bytes must
// stay until the stream has passed them; with other host memory the driver stages them, and a download has not
// happened before the stream is synchronised.
void upload(std::byte* device_to, const void* from, size_t bytes, const Stream& stream);
void download(void* to, const std::byte* device_from, size_t bytes, const Stream& stream);
void copy(std::byte* device_to, const std::byte* device_from, size_t bytes, const Stream& stream);
void fill(std::byte* device_to, u8 value, size_t bytes, const Stream& stream);
void fill_words(std::byte* device_to, u32 value, size_t words, const Stream& stream);

}  // namespace heddle::cuda
