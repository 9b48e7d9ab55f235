// The stacks of a small training script, as PyTorch records them, and steps made of them.
#pragma once

#include <string>
#include <vector>

#include "tests/support/recording_builder.h"

namespace memwall {

struct TrainingScene {
  using Frame = RecordingBuilder::Frame;
  RecordingBuilder b;

  static Frame torch(const std::string& function, const std::string& file, int line = 1) {
    return {function, "/env/lib/python3.12/site-packages/torch/" + file, line};
  }
  static Frame cpp(const std::string& function) { return {function, "??", 0}; }
  static Frame script(int line) { return {"main", "/home/me/train.py", line}; }
  static Frame model(const std::string& function, int line) { return {function, "/home/me/model.py", line}; }
  static Frame allocator() {
    return cpp("c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::malloc(...)");
  }

  // The autograd thread: no Python frames.
  StackId backward_of(const std::string& node) {
    return b.stack({allocator(), cpp("at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)"),
                    cpp("torch::autograd::" + node + "::apply(std::vector<at::Tensor>&&)"),
                    cpp("torch::autograd::Engine::evaluate_function(std::shared_ptr<GraphTask>&)"),
                    cpp("torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)")});
  }
  StackId forward_at(int line) {
    return b.stack(
        {allocator(), model("forward", line), torch("_call_impl", "nn/modules/module.py", 1790), script(20)});
  }
  StackId optimizer_at(int line) {
    return b.stack({allocator(), torch("_init_group", "optim/adamw.py", line), torch("step", "optim/adamw.py", 220),
                    torch("wrapper", "optim/optimizer.py", 493), script(23)});
  }

  StackId construction = b.stack({allocator(), model("__init__", 5), script(10)});
  StackId batch =
      b.stack({allocator(), cpp("torch::autograd::dispatch_to(at::Tensor const&, c10::Device, bool)"), script(18)});
  StackId forward = forward_at(12);
  StackId loss = b.stack({allocator(), torch("cross_entropy", "nn/functional.py", 3059), script(21)});
  StackId backward = backward_of("generated::MulBackward0");
  StackId accumulate = backward_of("AccumulateGrad");
  StackId optimizer = optimizer_at(130);
  StackId zero_grad = b.stack({torch("zero_grad", "optim/optimizer.py", 975), script(19)});
  StackId script_line = b.stack({script(24)});

  // A block that lives for no time: it shows a phase, and no more.
  void touch(StackId stack) { b.free(b.alloc(1, stack), stack); }

  // What a step leaves behind.
  struct Left {
    Address activation = 0, loss = 0, gradient = 0;
  };
  // A step of a model with one parameter of 1,000 bytes: batch, forward, backward, optimizer. `gradients`: dropped at
  // the beginning, as zero_grad does.
  Left step(const std::vector<Address>& gradients = {}) {
    for (const Address gradient : gradients) b.free(gradient, zero_grad);
    const Address input = b.alloc(300, batch);
    const Address saved = b.alloc(5000, forward);
    const Address temporary = b.alloc(700, forward);
    b.free(temporary, forward);
    Left left;
    left.loss = b.alloc(4, loss);
    const Address flowing = b.alloc(5000, backward);
    left.gradient = b.alloc(1000, accumulate);
    b.free(saved, backward);
    b.free(flowing, backward);
    const Address square = b.alloc(1000, optimizer);
    b.free(square, optimizer);
    b.free(input, script_line);
    b.free(left.loss, script_line);
    return left;
  }
};

}  // namespace memwall
