// Order on the device: streams, events, and graphs of what was put on a stream. All are move-only and throw
// Error(kDevice) where the driver reports a fault, which may be one of earlier work on the device.
#pragma once

#include <utility>

#include "heddle/backend/cuda/runtime/handle.h"

namespace heddle::cuda {

class Stream {
 public:
  // A new stream, which does not wait for the default stream.
  explicit Stream(const Device& device);
  // A caller's stream, which stays the caller's. Null is the default stream of the caller's context.
  static Stream borrow(StreamHandle handle, const Device& device);

  StreamHandle handle() const { return handle_; }
  ContextHandle context() const { return context_; }
  void synchronize() const;
  bool done() const;       // all that was put on it has run
  bool capturing() const;  // what is put on it is recorded, not run

 private:
  Stream(ContextHandle context, StreamHandle handle) : context_(context), handle_(handle) {}

  ContextHandle context_;
  StreamHandle handle_;
  Handle<StreamHandle, &Driver::stream_destroy> owned_;
};

class Event {
 public:
  explicit Event(const Device& device);

  void record(const Stream& stream);
  void synchronize() const;  // until the last record has been reached
  bool done() const;
  void hold(const Stream& stream) const;  // what follows on `stream` waits for the last record
  // Milliseconds from `begin` to this one; both have been reached. Resolution is about half a microsecond.
  double elapsed_ms(const Event& begin) const;

 private:
  Handle<EventHandle, &Driver::event_destroy> event_;
};

// A recording of what was put on a stream. It can be launched any number of times.
class Graph {
 public:
  void launch(const Stream& stream) const;

 private:
  friend class GraphCapture;
  Handle<GraphExecHandle, &Driver::graph_exec_destroy> exec_;
};

// From construction to end(), what this thread puts on the stream is recorded and does not run. The stream is the
// caller's or an own one, never the default stream. Other threads of the process are not restricted.
class GraphCapture {
 public:
  explicit GraphCapture(const Stream& stream);
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;
  ~GraphCapture();  // without end(): what was recorded is dropped

  Graph end();

 private:
  const Stream* stream_;
};

}  // namespace heddle::cuda
