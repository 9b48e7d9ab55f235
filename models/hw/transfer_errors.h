// How far a transferred duration may be from the truth, by the rule that transferred it: 90 % of truths lie within
// duration x (1 +- error). Fitted to pairs of published measurements of one piece of work on two GPUs, of which
// `memwall validate --transfer` prints the fit, and the coverage on the rows that it did not use. These are not the
// residuals of prices: a ratio of two prices keeps only what they do not have wrong in common.
//
// They hold between machines that differ by a factor of two or more in something that the op uses; machines that are
// nearer have less of it, in proportion to the logarithm of the largest ratio.
#pragma once

#include <span>

#include "models/hw/transferred_duration.h"

namespace memwall {

struct TransferError {
  TransferRule rule = TransferRule::work;
  OperatorClass operator_class = OperatorClass::other;  // of kernels
  double error = 0;
  std::string_view source;
};

// All that are stated.
std::span<const TransferError> transfer_errors();

double launch_transfer_error();  // of the fixed part of anything
double kernel_transfer_error(TransferRule rule, OperatorClass operator_class);
// Of kernels between GPUs of two makers, besides: other compilers, libraries and matrix units, so that prices have
// nothing wrong in common.
double vendor_transfer_error();
double copy_transfer_error();
double collective_transfer_error(bool known_bytes);

}  // namespace memwall
