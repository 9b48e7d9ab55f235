// Scaling of the loss, so that gradients in fp16 do not vanish (torch.amp.GradScaler): the loss times a scale on the
// device; before the update the gradients are divided by it and checked for infinities; after it the scale is adapted.
#pragma once

#include "models/workload/generate/configuration/recipe.h"
#include "models/workload/generate/operators/tape.h"

namespace memwall {

class GradientScaler {
 public:
  // Are gradients computed in fp16: under autocast, or of fp16 parameters with main copies in fp32?
  static bool scales(const Recipe& recipe);
  // Before begin_step().
  GradientScaler(Tape& tape, const Recipe& recipe);
  bool enabled() const { return static_cast<bool>(scale_); }

  // The loss itself where nothing is scaled.
  Tensor scaled(const Tensor& loss);

  // Divides and checks; then the host reads whether to go on, and waits for it. REQUIRES: enabled().
  void unscale(const Tensors& gradients);
  // For an optimizer that divides and checks by itself: only checked, nobody waits. Returns the two numbers that its
  // kernel reads. REQUIRES: enabled().
  Tensors check(const Tensors& gradients);
  // After the update.
  void adapt();

 private:
  void check_with(const Tensors& gradients, Tensor inverse);

  Tape& tape_;
  Tensor scale_, tracker_;  // empty where nothing is scaled
  Tensor found_;            // whether there was an infinity, from the check to adapt()
};

}  // namespace memwall
