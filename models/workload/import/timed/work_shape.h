// What the work of a captured operator is made of, and what its storages hold, told by its tensors.
//
// An operator's tensors stand in the call as its schema orders them, absent ones left out. From the
// class and the name follows which of them say what (meanings: sim/trace/op.h):
//   gemm            mm, addmm, bmm, baddbmm, addbmm, mv, addmv, dot, addr, linear, matmul; _grouped_mm is
//                   one product per group where the groups divide its tokens evenly, else a single one
//   convolution     of a transposed one, told by its FLOPs, channels and positions are those of the plain
//                   convolution whose gradient it is
//   attention       queries, keys and values [batch, heads, length, size]; of the operators that do not
//                   begin with _scaled_dot_product, [batch, length, heads, size]
//   normalization   one row per mean or deviation; of batch norm one per channel
//   reduction       one row per result; a softmax has one per sum, a loss one per sample, and what reduces a
//                   list of tensors a single one
//   optimizer and lists of tensors   elements of one list
// An operator whose tensors do not fit its class has no shape, which means unknown.
#pragma once

#include "models/workload/import/timed/operator_call.h"

namespace memwall {

// The shape of the call's work by its operator class, {} = unknown.
Shape work_shape(const OperatorCall& call);

// The shape of a storage of `bytes` bytes, if `tensor` is all of it; {} if it is not. `made`: the tensor is what
// the storage was made for and says how it was meant; else it is any view, and the shape is that in which the
// elements lie (of a transposed matrix the matrix's). A scalar is {1}.
Shape storage_shape(const CapturedTensor& tensor, Bytes bytes, bool made);

}  // namespace memwall
