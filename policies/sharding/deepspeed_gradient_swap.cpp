#include "policies/sharding/deepspeed_gradient_swap.h"

#include <algorithm>
#include <cassert>

namespace memwall {

SwapBuffers make_swap_buffers(DeepSpeedProgram& program, std::int64_t elements, std::int64_t count) {
  SwapBuffers swap{{}, 4 * elements};
  for (std::int64_t i = 0; i < count; ++i)
    swap.buffers.push_back(program.host_storage(swap.each, StorageKind::workspace, "optimizer_swap_buffer"));
  return swap;
}

bool is_swappable(Bytes bytes, const AsynchronousIo& aio) { return bytes >= std::max(MiB(1), aio.block_size); }

GradientSwap::GradientSwap(DeepSpeedProgram& program, const SwapBuffers& buffers, Bytes bytes,
                           const AsynchronousIo& aio)
    : p_(program), buffers_(buffers), aio_(aio) {
  if (bytes > 0) far_ = p_.host_storage(bytes, StorageKind::gradient, "fp32_gradients", "nvme");
}

void GradientSwap::take(InsertionPoint point, std::uint16_t stream, StorageId gradient, Bytes bytes) {
  assert(bytes <= buffers_.each);
  if (filled_ + bytes > buffers_.each) {
    write_filled(point);
    if (filling_ == buffers_.buffers.size()) await_writes(point);
  }
  p_.copy(point, stream, bytes, gradient, {buffers_.buffers[filling_]}, true);
  filled_ += bytes;
}

void GradientSwap::flush(InsertionPoint point) {
  write_filled(point);
  await_writes(point);
}

void GradientSwap::write_filled(InsertionPoint point) {
  if (filled_ == 0) return;
  writes_.push_back(p_.storage_io(point, false, filled_, {buffers_.buffers[filling_]}, {far_}, aio_));
  filled_ = 0;
  ++filling_;
}

void GradientSwap::await_writes(InsertionPoint point) {
  for (const std::uint32_t written : writes_) p_.synchronize_event(point, written);
  writes_.clear();
  filling_ = 0;
}

}  // namespace memwall
