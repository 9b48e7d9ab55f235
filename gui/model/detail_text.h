// The words of details. Internal to gui/model.
#pragma once

#include <string>
#include <string_view>

#include "gui/model/open_run.h"
#include "traces/figure/axis.h"

namespace memwall::gui {

// "12.3 GFLOP": by powers of 1000.
std::string flops_text(double flops, const char* unit);
// "12.3 ms, from 1.2000 s to 1.2123 s": both ends with so many decimals that they differ; "never" where it did not
// happen.
std::string stretch(Time begin, Time end);
// Name, else operator, else kind.
std::string title_of(const OpDetail& detail);
// "#12 aten::mm (layers.3.mlp)". Throws InputError.
std::string describe_op(const OpenRun& run, OpId id);
// "storage 12: activation, 1.2 MB, aten::mm of layers.3". Throws InputError.
std::string describe_storage(const OpenRun& run, StorageId storage);
// Where its duration comes from: "measured", "modelled, 90 % of truths within 12 %".
std::string origin_text(const Op& op);

}  // namespace memwall::gui
