// Workspace: on which clock memory is shown.
#include "gui/model/load_progress.h"
#include "gui/view/workspace.h"
#include "traces/run/analysis/device_occupancy.h"

namespace memwall::gui {

void Workspace::show_clock(MemoryClock clock) {
  if (clock == state_.clock) return;
  state_.clock = clock;
  say(clock == MemoryClock::host
          ? tr("Memory is counted on the host's clock: from the call that allocates to the one that frees.")
          : tr("Memory is counted on the device's clock: while bytes hold data."));
  for (std::size_t run = 0; run < state_.runs.size(); ++run)
    if (clock == MemoryClock::device && !state_.runs[run].device_history) load_device_history(run);
  Q_EMIT rows_changed();
}

// Needs all ops and what they use: the whole run, as its analysis does.
void Workspace::load_device_history(std::size_t run) {
  const auto source = state_.runs[run].source;
  const auto analysis = state_.runs[run].analysis;
  background_.start(
      tr("Working out when memory of %1 holds data").arg(QString::fromStdString(state_.runs[run].name)),
      [this, run, source, analysis](const LoadProgress& progress) -> std::function<void()> {
        const auto whole = analysis ? analysis->run : source->whole(part_of(progress, 0, 0.7));
        if (!has_device_clock(*whole))
          return [this] {
            say(tr("The trace does not know what ops read and write: there is no device's clock of its memory."));
            state_.clock = MemoryClock::host;
            Q_EMIT rows_changed();
          };
        auto history = ResidencyHistory::load_on_device(*source, device_residency(*whole), part_of(progress, 0.8, 1));
        return [this, run, history] {
          state_.runs[run].device_history = history;
          Q_EMIT loaded();
        };
      },
      QStringLiteral("device_history/%1").arg(run));
}

}  // namespace memwall::gui
