// What a summary says of memory: whether a run fits, how full its tiers get, what may make it fit.
#pragma once

#include <QString>

#include "gui/model/open_run.h"

namespace memwall::gui {

// Each is "" where there is nothing to say. Instants are links, `shift` later than the run's own times.

// For each tier that is used, how full it gets, when, and what is missing there.
QString fit_html(const OpenRun& run, Duration shift);

// A table of all tiers; with run.analysis their peaks by the device's clock, too.
QString tiers_html(const OpenRun& run, Duration shift);

// What was tried on a step that does not fit, best first.
QString tried_html(const OpenRun& run);

}  // namespace memwall::gui
