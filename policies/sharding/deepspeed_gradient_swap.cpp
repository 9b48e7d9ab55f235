#include "policies/sharding/deepspeed_gradient_swap.h"

#include <algorithm>
#include <cassert>
#include <utility>

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
  if (step_.filled + bytes > buffers_.each) {
    write_filled(point, step_);
    if (step_.filling == buffers_.buffers.size()) await_writes(point, step_);
  }
  p_.copy(point, stream, bytes, gradient, {buffers_.buffers[step_.filling]}, true);
  step_.filled += bytes;
}

void GradientSwap::end_step() {
  ended_.push_back(std::move(step_));
  step_ = {};
}

void GradientSwap::flush(InsertionPoint point) {
  assert(!ended_.empty());
  write_filled(point, ended_.front());
  await_writes(point, ended_.front());
  ended_.pop_front();
}

void GradientSwap::write_filled(InsertionPoint point, Step& step) {
  if (step.filled == 0) return;
  step.writes.push_back(p_.storage_io(point, false, step.filled, {buffers_.buffers[step.filling]}, {far_}, aio_));
  step.filled = 0;
  ++step.filling;
}

void GradientSwap::await_writes(InsertionPoint point, Step& step) {
  for (const std::uint32_t written : step.writes) p_.synchronize_event(point, written);
  step.writes.clear();
  step.filling = 0;
}

}  // namespace memwall
