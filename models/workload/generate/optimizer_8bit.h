// AdamW with 8-bit states, as bitsandbytes' AdamW8bit (Dettmers et al. 2021): both moments in one byte per element,
// quantized in blocks of 256 with a scale each; tensors of fewer than 4,096 elements keep them in fp32. Parameters are
// updated one by one, and after each the host waits for the device.
#pragma once

#include "models/workload/generate/operators/tape.h"

namespace memwall {

// The two tables of 256 values that all parameters share.
Tensors make_maps_8bit(Tape& tape);
void make_states_8bit(Tape& tape, Parameter& parameter, const Tensors& maps);
void update_8bit(Tape& tape, Parameter& parameter);

}  // namespace memwall
