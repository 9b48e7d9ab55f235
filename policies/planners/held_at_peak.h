// What takes the device's memory at the peak of a planned step, in a sentence's part: where no plan keeps to the
// budget, this is what stands in its way.
#pragma once

#include <string>

#include "sim/trace/trace.h"

namespace memwall {

// "at the peak, in optimizer (op 1234 'aten::_foreach_add_'), optimizer states take 1.493 GB, gradients 497.8 MB and
// parameters 497.8 MB". The three kinds that take most, as requested.
std::string held_at_peak(const Trace& planned);

}  // namespace memwall
