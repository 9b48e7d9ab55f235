// What the viewer ends with when it is used as a command: as `memwall` does.
#pragma once

namespace memwall::gui {

enum ExitCode { kDone = 0, kUsage = 2, kUnreadable = 6 };

}  // namespace memwall::gui
