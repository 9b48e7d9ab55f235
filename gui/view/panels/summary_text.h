// What a run comes to, as text with tables and links: step time, classes of time, peaks, links,
// policies, notes.
#pragma once

#include <QString>

#include "gui/model/open_run.h"

namespace memwall::gui {

// With run.analysis all that `memwall run` tells; without, what is known as soon as a run is open. Instants are links,
// `shift` later than the run's own times, as the canvas draws them.
QString summary_html(const OpenRun& run, Duration shift);

// The first look at a run, in a few lines: whether it fits, how full each tier gets and when, how long a step takes and
// what that time goes to. Without run.analysis the time is that of the whole run.
QString first_look_html(const OpenRun& run, Duration shift);

// What the critical path and the accounting of a run need, in bytes: they read all of it.
Bytes analysis_bytes(const OpenRun& run);

}  // namespace memwall::gui
