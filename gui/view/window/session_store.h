// Where sessions are kept between starts: small files in the user's folder for application data.
//
// A file that cannot be read or written never stops anything: it is ignored, and the reason told.
#pragma once

#include <QString>

#include <optional>

#include "gui/view/window/session_state.h"

namespace memwall::gui {

class SessionStore {
 public:
  SessionStore();  // the user's folder (QStandardPaths::AppDataLocation)
  explicit SessionStore(QString folder) : folder_(std::move(folder)) {}
  // Of a window that begins like this and remembers nothing: no file is read or written.
  explicit SessionStore(ProgramSession session) : fixed_(std::move(session)) {}

  // Defaults where there is none. `complaint`: set to a sentence if there is one that cannot be used, else left alone.
  ProgramSession program(QString& complaint) const;
  // Of the runs at these paths, in this order; nothing where there is none.
  std::optional<FileSession> file(const QStringList& paths, QString& complaint) const;
  // Written beside the target and renamed. The sentence says what went wrong; empty: nothing.
  QString keep(const ProgramSession& session) const;
  QString keep(const QStringList& paths, const FileSession& session) const;

  QString program_path() const;
  QString file_path(const QStringList& paths) const;

 private:
  QString folder_;
  std::optional<ProgramSession> fixed_;  // in place of files
};

}  // namespace memwall::gui
