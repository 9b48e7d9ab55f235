// The end of a forward pass that multiplies by an output layer's weight and takes the mean cross entropy of the
// logits, with its beginning of backward: each op and tensor of it, told by names of operators and by dataflow.
//
//   x -[cast]-> x_low -product-> logits -[cast]-> wide -log_softmax-> logs -[cast]-> wide_logs -nll_loss-> value
//
// and back. A cast that the program does not make is kNoOp; its tensor is then the one before it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

struct LossProgram {
  struct Forward {
    OpId cast_x = kNoOp, product = kNoOp, cast_logits = kNoOp, log_softmax = kNoOp, cast_logs = kNoOp, loss = kNoOp;
  } forward;
  struct Backward {
    OpId seed = kNoOp, loss = kNoOp, cast_logs = kNoOp, log_softmax = kNoOp, cast_logits = kNoOp, input = kNoOp;
    OpId weight = kNoOp;  // kNoOp: the weight is not trained
    OpId cast_x = kNoOp;
  } backward;

  StorageId x = kNoStorage, x_low = kNoStorage;
  StorageId weight = kNoStorage;  // as the product reads it
  StorageId logits = kNoStorage, wide = kNoStorage, logs = kNoStorage, wide_logs = kNoStorage;
  StorageId value = kNoStorage, counted = kNoStorage, targets = kNoStorage;
  StorageId seed = kNoStorage;
  StorageId of_x = kNoStorage;       // the gradient of `x`
  StorageId of_weight = kNoStorage;  // that of `weight`, as its product makes it
  std::vector<StorageId> made;       // everything that lives between: `x_low` of a cast to `of_x`, without `x`

  std::int64_t sequences = 0, tokens = 0, width = 0, vocabulary = 0;  // x is [sequences, tokens, width]
  DataType x_type = DataType::unknown, type = DataType::unknown;      // of `x`; of the product
  DataType wide_type = DataType::unknown, logs_type = DataType::unknown, loss_type = DataType::unknown;
};

// Of a pass. Where it has no such program, `refusal` says what was found in its place, without the policy's name.
struct FoundLoss {
  std::optional<LossProgram> program;
  std::string refusal;
};
FoundLoss loss_program(const Trace& trace, const Dataflow& flow, const Pass& pass);

}  // namespace memwall
