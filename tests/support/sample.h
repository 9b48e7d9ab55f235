// The sample that the project ships (traces/samples/gpt_124m.mwt), generated, not captured.
#pragma once

#include "sim/trace/trace.h"

namespace memwall {

// Two steps of a GPT of the size of GPT-2 small: 12 layers of 768, batch 8 of 1,024 tokens, AdamW; every
// duration modelled for one A100 SXM 40 GB, 6 us of host time per launch.
Trace sample_gpt_124m();

}  // namespace memwall
