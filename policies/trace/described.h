// How sentences name an op and a storage of a trace.
#pragma once

#include <string>

#include "sim/trace/trace.h"

namespace memwall {

// "op 12 'aten::mm'"; where it has no name, its kind: "op 12 (kernel)".
std::string described_op(const Trace& trace, OpId op);
// "storage 7 'layers.0.weight'"; without its label where it has none.
std::string described_storage(const Trace& trace, StorageId storage);

}  // namespace memwall
