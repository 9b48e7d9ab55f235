// Opens run files off the window's thread: looks what the path is, lets memwall-probe open it with
// limits, then opens it here. What is open stays until the new runs are there.
#pragma once

#include <QObject>
#include <QStringList>

#include <filesystem>
#include <string>
#include <vector>

#include "gui/model/open_run.h"
#include "gui/view/background.h"

namespace memwall::gui {

// memwall-probe: as the environment variable MEMWALL_PROBE_PROGRAM says, else beside this program.
std::filesystem::path probe_program();

// Throws InputError if this cannot be a run, before anything of it is read that could hang: missing, a folder, a FIFO
// or device, not readable, a trace.
void check_run_path(const std::filesystem::path& path);

// What RunOpener does on its worker. Throws InputError, UsageError, LoadCancelled.
OpenRun open_guarded(const std::filesystem::path& path, const LoadProgress& progress);

class RunOpener : public QObject {
  Q_OBJECT
 public:
  explicit RunOpener(QObject* parent = nullptr);

  // One path, or two to compare. What is being opened is given up.
  void open(const QStringList& paths);
  // Beside a run that is open already.
  void open_beside(const OpenRun& first, const QString& path);
  Background& background() { return background_; }

 Q_SIGNALS:
  void opened(const std::vector<memwall::gui::OpenRun>& runs);
  void failed(const QString& sentence);

 private:
  void start(std::vector<OpenRun> runs, const QStringList& paths);
  Background background_;
};

}  // namespace memwall::gui
