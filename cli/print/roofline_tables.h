// A step under the roofline as tables and as a drawing.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "study/fusion_effect.h"
#include "cli/print/table.h"
#include "models/hw/roofline.h"
#include "traces/figure/roofline_figure.h"

namespace memwall {

// `most`: operators shown. `title`: of the answer, which stands first. `stranger`: a sentence on measured times that
// need not be this machine's, which is the reason where they are above its roofs; "" = they are its own.
std::vector<Table> roofline_tables(const Roofline& roofline, const FusionEffect& fusion, std::size_t most,
                                   const std::string& title, const std::string& stranger = "");

// "bound_by" of JSON: what bounds the kernels for most of their time; null of a step without any.
JsonField bound_field(const Roofline& roofline);

// Operators below a thousandth of the time are left out.
RooflineChart roofline_chart(const Roofline& roofline, const std::string& step, const std::string& machine);

}  // namespace memwall
