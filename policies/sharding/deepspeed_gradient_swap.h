// Optimizer states and fp32 gradients of stage 3 on NVMe share pinned buffers, each as large as the largest sub-group
// in fp32. During backward all of them collect gradients: the host waits while each is copied into the buffer that is
// being filled; a full one is written, beside what follows, and only where none is free the host waits for the writes.
// The optimizer step writes what is left and waits for all. A gradient below max(1 MiB, block_size) is not swapped: it
// stays on the GPU, in fp32, until its sub-group steps.
//
// Source: deepspeedai/DeepSpeed, deepspeed/runtime/swap_tensor/async_swapper.py, optimizer_utils.py
// (_swap_out_gradients) and utils.py (SwapBufferManager, SwapBuffer).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/deepspeed_settings.h"

namespace memwall {

struct SwapBuffers {
  Storages buffers;  // in host memory
  Bytes each = 0;
};

// Of so many elements each.
SwapBuffers make_swap_buffers(DeepSpeedProgram& program, std::int64_t elements, std::int64_t count);

// Is a tensor of so many bytes large enough for asynchronous I/O?
bool is_swappable(Bytes bytes, const AsynchronousIo& aio);

class GradientSwap {
 public:
  // `bytes`: of all gradients that are swapped: NVMe has a place for them from before the step on. Both must outlive
  // it.
  GradientSwap(DeepSpeedProgram& program, const SwapBuffers& buffers, Bytes bytes, const AsynchronousIo& aio);

  // `gradient`, of so many bytes on the device, was made in `stream`. REQUIRES: no more than a buffer holds.
  void take(InsertionPoint point, std::uint16_t stream, StorageId gradient, Bytes bytes);
  // The gradients of a step are all taken. What is taken next is of the step behind it.
  void end_step();
  // Behind it all of the first step that was not flushed yet are on NVMe. REQUIRES: it has ended.
  void flush(InsertionPoint point);

  StorageId on_nvme() const { return far_; }

 private:
  struct Step {
    std::size_t filling = 0;  // index of the buffer that is filled; those before it are being written
    Bytes filled = 0;
    std::vector<std::uint32_t> writes{};
  };
  void write_filled(InsertionPoint point, Step& step);
  void await_writes(InsertionPoint point, Step& step);

  DeepSpeedProgram& p_;
  const SwapBuffers& buffers_;
  AsynchronousIo aio_;
  StorageId far_ = kNoStorage;
  Step step_;               // whose gradients are taken
  std::deque<Step> ended_;  // and not flushed
};

}  // namespace memwall
