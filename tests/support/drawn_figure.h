// What holds of every figure, whatever its data are.
#pragma once

#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/figure_checks.h"
#include "tests/support/xml_faults.h"
#include "traces/figure/svg.h"

namespace memwall {

// Texts can be read, everything is on its page, and the SVG is well formed.
inline void expect_drawn(const Figure& figure) {
  expect_legible(figure);
  expect_within_page(figure);
  std::ostringstream svg;
  write_svg(figure, svg);
  EXPECT_EQ(fault_in_xml(svg.str()), "");
}

}  // namespace memwall
