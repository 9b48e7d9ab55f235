// What an optimizer of PyTorch, or bitsandbytes' 8-bit AdamW, issues in one step, with hyperparameters that decide
// which kernels run: AdamW with weight decay, Adam without, SGD with momentum and without weight decay.
//
//   foreach   torch/optim/adam.py, _multi_tensor_adam; sgd.py, _multi_tensor_sgd: lists of tensors; Adam's temporaries
//             are as large as the parameters
//   fused     _fused_adam, _fused_sgd: all in one; Adam's counters of steps are on the device
//   for_loop  _single_tensor_adam, _single_tensor_sgd: parameter by parameter
//   8-bit     bitsandbytes' AdamW8bit: one kernel per parameter, states of a byte with a factor for each 256, fp32 for
//             fewer than 4,096 elements, and a synchronization behind each (bitsandbytes/optim/optimizer.py, 0.44);
//             paged: PagedAdamW8bit, whose moments of 100,000 elements and more are on the host, are fetched before
//             their update through a window of a few pages, and leave behind it (generate/optimizer_8bit.h says why)
//
// Of parameters with a master copy the gradients are cast to fp32, one by one, the copy is updated, and the parameters
// take its values (Megatron-LM's float16 optimizer).
#pragma once

#include <span>
#include <vector>

#include "policies/recipe/list_writer.h"
#include "policies/recipe/updated_parameters.h"
#include "policies/trace/trace_edit.h"

namespace memwall {

enum class UpdateRule : std::uint8_t { sgd, adam, adamw, adamw_8bit };
enum class UpdateKernels : std::uint8_t { foreach, fused, for_loop };

struct UpdateLists;

class OptimizerUpdate {
 public:
  // Makes the states of every parameter, which live before the step. `edit` is not kept.
  OptimizerUpdate(TraceEdit& edit, const std::vector<UpdatedParameter>& parameters, UpdateRule rule,
                  UpdateKernels kernels, bool paged = false);
  // One update, of some or all. REQUIRES: those that it was made with, from number `first` on, in their order (their
  // gradients may be others); at least one; of 8-bit AdamW, none with a master copy.
  void write(ListWriter& writer, std::span<const UpdatedParameter> parameters, std::size_t first = 0) const;

 private:
  void write_lists(ListWriter& writer, std::span<const UpdatedParameter> parameters, std::size_t first) const;
  void write_8bit(ListWriter& writer, std::span<const UpdatedParameter> parameters, std::size_t first) const;
  void write_paged(ListWriter& writer, const TensorList& value, const TensorList& gradient,
                   const TensorList& states) const;
  void write_kernels(ListWriter& writer, const UpdateLists& lists) const;

  const UpdateRule rule_;
  const UpdateKernels kernels_;
  std::vector<TensorList> states_;  // by parameter: the moments, then a counter of steps or the factors of blocks
  TensorList maps_;                 // of 8-bit states
  const bool paged_;
  TensorList window_;            // one, of the pages that are on the device; empty without paging
  std::uint16_t evictions_ = 0;  // the stream of those that leave
};

}  // namespace memwall
