// A network on a tape: its parameters and inputs, and one forward pass.
#pragma once

#include <memory>

#include "models/workload/generate/configuration/model.h"
#include "models/workload/generate/configuration/recipe.h"
#include "models/workload/generate/operators/tape.h"
#include "sim/trace/attention_kernel.h"

namespace memwall {

class Network {
 public:
  virtual ~Network() = default;
  // The forward pass and its loss, a scalar.
  virtual Tensor loss() = 0;
};

// Parameters are made in the order of model.parameters(), then the inputs. `model` and `recipe` must outlive the
// network. Throws UsageError where a setting is not implemented.
std::unique_ptr<Network> make_transformer(Tape& tape, const Model& model, const Recipe& recipe);
std::unique_ptr<Network> make_convolutional_network(Tape& tape, const Model& model, const Recipe& recipe);
// Whichever the architecture asks for.
std::unique_ptr<Network> make_network(Tape& tape, const Model& model, const Recipe& recipe);

// The type of parameters, and that of autocast, if any.
DataType parameter_type(Precision precision);
std::optional<DataType> autocast_type(const Recipe& recipe);

// The kernel of fused attention. REQUIRES: not plain.
AttentionKernel attention_kernel(Attention attention);

}  // namespace memwall
