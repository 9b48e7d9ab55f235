// A figure for a dark page. Figures are made for a light one; this puts the same shapes on a dark one.
#pragma once

#include "traces/figure/figure.h"

namespace memwall {

// The page itself is the first shape, so that whoever shows the figure needs no background of its own. Text that stands
// on a shape is black or white, as that shape's new colour asks for.
Figure dark_figure(Figure light);

}  // namespace memwall
