#include "heddle/backend/cuda/executors/device_space.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/executors/panel_packer.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/base/error.h"
#include "heddle/ir/executor/transfer.h"

namespace heddle::cuda {
namespace {

class DeviceCopy : public TransferEnd {
 public:
  explicit DeviceCopy(const Device& device) : event_(device) {}

  bool done() const override {
    try {
      return error_ || event_.done();
    } catch (const Error&) {  // wait() throws it
      return true;
    }
  }
  void wait() const override {
    if (error_) std::rethrow_exception(error_);
    event_.synchronize();
  }
  void record(const Stream& stream) { event_.record(stream); }
  void fail(std::exception_ptr error) { error_ = std::move(error); }
  // Has later work of the stream wait for the copy. Throws the copy's error where it has one already.
  void hold(const Stream& stream) const {
    if (error_) std::rethrow_exception(error_);
    event_.hold(stream);
  }

 private:
  Event event_;
  std::exception_ptr error_;  // it could not be put on the stream
};

// Copies on a stream of their own. Those of host memory that is not page-locked are staged by the driver, which may wait.
class DeviceQueue : public TransferQueue {
 public:
  explicit DeviceQueue(const Device& device) : device_(device), stream_(device) {}
  ~DeviceQueue() override {
    try {
      stream_.synchronize();
    } catch (const Error&) {  // finish() has told it, if it was called
    }
  }

 protected:
  TransferEvent put(const Transfer& transfer) override {
    const ContextScope scope(stream_.context());
    auto copy = std::make_shared<DeviceCopy>(device_);
    try {
      for (const TransferEvent& event : transfer.after)
        if (const auto* own = dynamic_cast<const DeviceCopy*>(event.get()))
          own->hold(stream_);
        else
          event->wait();
      put_copy(transfer);
      copy->record(stream_);
    } catch (...) {
      copy->fail(std::current_exception());
    }
    return copy;
  }

 private:
  void put_copy(const Transfer& transfer) const {
    const auto& [way, to, from, bytes, after] = transfer;
    switch (way) {
      case Transfer::Way::kToSpace:
        return upload(to, from, bytes, stream_);
      case Transfer::Way::kFromSpace:
        return download(to, from, bytes, stream_);
      case Transfer::Way::kInSpace:
        return cuda::copy(to, from, bytes, stream_);
    }
  }

  const Device& device_;
  Stream stream_;
};

class DeviceSpace : public MemorySpace {
 public:
  // The current context is the one that all of the memory will belong to.
  explicit DeviceSpace(const Device& device) : device_(device), stream_(device) {}

  std::byte* allocate(size_t bytes) override {
    const ContextScope scope(stream_.context());
    DeviceBuffer buffer(std::max<size_t>(bytes, 1), device_);
    fill(buffer.data(), 0, buffer.size(), stream_);
    stream_.synchronize();
    std::byte* address = buffer.data();
    const std::lock_guard lock(mutex_);
    buffers_.emplace(address, std::move(buffer));
    return address;
  }
  void release(std::byte* address) override {
    const std::lock_guard lock(mutex_);
    buffers_.erase(address);
  }
  void write(std::byte* to, const void* from, size_t bytes) override {
    upload(to, from, bytes, stream_);
    stream_.synchronize();
  }
  void read(void* to, const std::byte* from, size_t bytes) override {
    download(to, from, bytes, stream_);
    stream_.synchronize();
  }
  i64 available() const override { return memory_info(device_).free; }
  std::unique_ptr<TransferQueue> transfers() override {
    const ContextScope scope(stream_.context());
    return std::make_unique<DeviceQueue>(device_);
  }
  std::shared_ptr<std::byte> host_memory(size_t bytes) override {
    const ContextScope scope(stream_.context());
    auto buffer = std::make_shared<PinnedBuffer>(bytes, device_);
    return {buffer, buffer->data()};
  }
  std::unique_ptr<PanelPacker> panel_packer() override {
    if (!why_no_compiler().empty()) return nullptr;  // programs that were made ahead of time need none
    const ContextScope scope(stream_.context());
    return make_panel_packer(device_);
  }

 private:
  const Device& device_;
  Stream stream_;
  std::mutex mutex_;
  std::map<std::byte*, DeviceBuffer> buffers_;
};

}  // namespace

MemorySpace& device_space(const Device& device) {
  static std::mutex mutex;
  static std::map<int, DeviceSpace> spaces;  // by ordinal
  const std::lock_guard lock(mutex);
  const ContextScope scope(device.primary_context());
  return spaces.try_emplace(device.ordinal(), device).first->second;
}

}  // namespace heddle::cuda
