// What PyTorch's min-cut partitioner thinks of an operator, by its name: may it be computed again, is it merged with
// its neighbours?
//
// torch/_functorch/partitioners.py (pytorch 8ea3ef61a26d), get_default_op_list. Its graph consists of decomposed
// operators; a trace has whole ones. One that decomposes into what may be computed again (layer_norm, softmax,
// rms_norm) counts as such. Of an operator that the list does not name the class decides (elementwise), as the list
// takes in all that PyTorch tags as pointwise.
#pragma once

#include "sim/trace/trace.h"

namespace memwall {

struct PartitionerOperator {
  bool recomputable = false;       // on the list of what may be computed again
  bool random = false;             // draws random numbers
  bool compute_intensive = false;  // matrix products, convolutions, attention
  bool joins = false;              // "cat": is merged with what makes its inputs, not with what reads its result
};

PartitionerOperator partitioner_operator(const Trace& trace, const Op& op);

// Does a compiler merge `reader` with `maker`, whose result it reads?
bool is_fusible(const PartitionerOperator& maker, const PartitionerOperator& reader);

}  // namespace memwall
