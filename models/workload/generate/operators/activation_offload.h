// Saved tensors in host memory, as torchtune's OffloadActivations has them
// (torchtune/training/_activation_offloading.py). Each is copied by a stream of its own as soon as it is saved; the
// last five are also held on the device, and who drops the oldest waits for its copy. Backward copies a tensor back
// when a node asks for it, the compute stream waiting, and holds it until the next node that asks has run. Parameters
// and tensors under 1,024 bytes stay.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

class ActivationOffload : public SavedTensorHooks {
 public:
  explicit ActivationOffload(Tape& tape);
  std::unique_ptr<PackedTensor> pack(Tape& tape, const Tensor& tensor) override;

 private:
  friend struct OffloadedTensor;
  // A tensor that is still held on the device, and the event behind its copy.
  struct Held {
    std::shared_ptr<Tensor> tensor;
    std::uint32_t event;
  };

  Tensor bring_back(Tape& tape, const Tensor& host, Tensor like);
  void copy(Tape& tape, const Tensor& from, const Tensor& to);
  std::uint32_t record(Tape& tape, std::uint16_t stream);
  void wait(Tape& tape, std::uint32_t event, std::uint16_t stream);
  void drop_oldest(Tape& tape);

  std::uint16_t stream_;
  std::deque<Held> held_;
  const GradientFunction* node_ = nullptr;  // that asked last
  Tensors returned_, returned_before_;      // for it, and for the one before
};

}  // namespace memwall
