#include "heddle/backend/cuda/runtime/stream.h"

#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

// True or false where `status` says done or not yet; throws on all else.
bool is_done(int status, const char* function) {
  if (status == kErrorNotReady) return false;
  check_status(status, function);
  return true;
}

}  // namespace

Stream::Stream(const Device& device) : context_(device.context()), handle_(nullptr) {
  const ContextScope scope(context_);
  driver().stream_create(&handle_, kStreamNonBlocking);
  owned_ = {context_, handle_};
}

Stream Stream::borrow(StreamHandle handle, const Device& device) {
  return {device.context(), handle};
}

void Stream::synchronize() const {
  const ContextScope scope(context_);
  driver().stream_synchronize(handle_);
}

bool Stream::done() const {
  const ContextScope scope(context_);
  return is_done(driver().stream_query.try_call(handle_), "cuStreamQuery");
}

bool Stream::capturing() const {
  const ContextScope scope(context_);
  CaptureStatus status = CaptureStatus::kNone;
  driver().stream_is_capturing(handle_, &status);
  return status != CaptureStatus::kNone;
}

Event::Event(const Device& device) {
  const ContextHandle context = device.context();
  const ContextScope scope(context);
  EventHandle event = nullptr;
  driver().event_create(&event, 0);
  event_ = {context, event};
}

void Event::record(const Stream& stream) {
  const ContextScope scope(event_.context());
  driver().event_record(event_.get(), stream.handle());
}

void Event::synchronize() const {
  const ContextScope scope(event_.context());
  driver().event_synchronize(event_.get());
}

bool Event::done() const {
  const ContextScope scope(event_.context());
  return is_done(driver().event_query.try_call(event_.get()), "cuEventQuery");
}

void Event::hold(const Stream& stream) const {
  const ContextScope scope(stream.context());
  driver().stream_wait_event(stream.handle(), event_.get(), 0);
}

double Event::elapsed_ms(const Event& begin) const {
  const ContextScope scope(event_.context());
  float milliseconds = 0;
  driver().event_elapsed_time(&milliseconds, begin.event_.get(), event_.get());
  return milliseconds;
}

void Graph::launch(const Stream& stream) const {
  require(exec_.get() != nullptr, "[cuda] this graph is empty; it is made by GraphCapture::end");
  const ContextScope scope(stream.context());
  driver().graph_launch(exec_.get(), stream.handle());
}

GraphCapture::GraphCapture(const Stream& stream) : stream_(&stream) {
  const ContextScope scope(stream.context());
  driver().stream_begin_capture(stream.handle(), CaptureMode::kThreadLocal);
}

GraphCapture::~GraphCapture() {
  if (!stream_) return;
  try {
    const ContextScope scope(stream_->context());
    GraphHandle graph = nullptr;
    driver().stream_end_capture.try_call(stream_->handle(), &graph);
    if (graph) driver().graph_destroy.try_call(graph);
  } catch (const std::exception&) {  // the context is gone, and the capture with it
  }
}

Graph GraphCapture::end() {
  require(stream_ != nullptr, "[cuda] end() was called before; a capture makes one graph");
  const Stream& stream = *std::exchange(stream_, nullptr);
  const ContextScope scope(stream.context());
  GraphHandle recorded = nullptr;
  driver().stream_end_capture(stream.handle(), &recorded);
  const Handle<GraphHandle, &Driver::graph_destroy> guard(stream.context(), recorded);
  GraphExecHandle exec = nullptr;
  driver().graph_instantiate(&exec, recorded, 0);
  Graph graph;
  graph.exec_ = {stream.context(), exec};
  return graph;
}

}  // namespace heddle::cuda
