// Kernels of compiled code (torch.compile with Inductor): chains of elementwise operators and reductions are one
// kernel each, products and attention are the libraries' own, and nothing is dispatched on the host.
#pragma once

#include <initializer_list>
#include <string_view>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

// While it lives, what is put on the tape has Dispatch::compiled and no history.
class CompiledScope {
 public:
  explicit CompiledScope(Tape& tape) : tape_(tape), dispatch_(tape.dispatch), gradients_(tape.gradients_enabled) {
    tape.dispatch = Dispatch::compiled;
    tape.gradients_enabled = false;
  }
  ~CompiledScope() {
    tape_.dispatch = dispatch_;
    tape_.gradients_enabled = gradients_;
  }
  CompiledScope(const CompiledScope&) = delete;
  CompiledScope& operator=(const CompiledScope&) = delete;

 private:
  Tape& tape_;
  Dispatch dispatch_;
  bool gradients_;
};

// One fused kernel. `rows` and `width` describe a normalization or a reduction; of anything else the elements of the
// first result count. `flops_per_element`: of rows x width, or of those elements.
struct FusedKernel {
  std::string_view name;
  OperatorClass operator_class = OperatorClass::elementwise;
  double flops_per_element = 1;
  std::int64_t rows = 0, width = 0;
};
void fused_kernel(Tape& tape, const FusedKernel& kernel, std::initializer_list<const Tensor*> reads,
                  std::initializer_list<const Tensor*> writes);
// The same, with one new tensor as its result.
Tensor fused(Tape& tape, const FusedKernel& kernel, std::initializer_list<const Tensor*> reads, const Shape& shape,
             DataType type);

// x [rows, k] times weight [n, k], plus the bias; the result is [..., n].
Tensor compiled_linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias);
// gradient [rows, n] times weight [n, k]; the result is [..., k].
Tensor gradient_of_input(Tape& tape, const Tensor& gradient, const Tensor& weight);
// The gradients of weight and bias.
Tensor gradient_of_weight(Tape& tape, const Tensor& gradient, const Tensor& x, const Tensor& weight);
Tensor gradient_of_bias(Tape& tape, const Tensor& gradient, const Tensor& bias);

// The same in fp8, as torchao's Float8Linear compiled: a kernel finds the largest magnitude of a 16-bit tensor, another
// writes it in fp8, by rows and by columns as products ask for it; products give 16 bit.
Tensor cast_to_fp8(Tape& tape, const Tensor& x);
Tensor linear_of_fp8(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias);
Tensor input_gradient_of_fp8(Tape& tape, const Tensor& gradient, const Tensor& weight);
// `weight`: the 16-bit one, whose gradient has its type.
Tensor weight_gradient_of_fp8(Tape& tape, const Tensor& gradient, const Tensor& x, const Tensor& weight);

// F.cross_entropy, compiled: logits are read in their own type and computed with in fp32; what is saved are the logits
// and two numbers per row. `logits` must not be needed afterwards: its reference is given up.
Tensor compiled_cross_entropy(Tape& tape, Tensor logits, const Tensor& targets);

}  // namespace memwall
