#include "gui/view/window/run_opener.h"

#include <QCoreApplication>
#include <QFileInfo>

#include <fmt/format.h>

#include <fstream>

#include "gui/model/guarded_open.h"
#include "sim/error.h"

namespace memwall::gui {
namespace {

namespace fs = std::filesystem;

std::string kind_of(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    default:
      return "no file";
  }
}

}  // namespace

fs::path probe_program() {
  if (qEnvironmentVariableIsSet("MEMWALL_PROBE_PROGRAM")) {
    return qEnvironmentVariable("MEMWALL_PROBE_PROGRAM").toStdString();
  }
  return fs::path(QCoreApplication::applicationDirPath().toStdString()) / "memwall-probe";
}

void check_run_path(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    throw InputError(fmt::format("{}: There is no such file.", path.string()));
  if (error) throw InputError(fmt::format("{}: It cannot be looked at: {}.", path.string(), error.message()));
  if (status.type() != fs::file_type::regular) {
    throw InputError(fmt::format("{}: This is {}, not a run file (.h5) as memwall run writes it.", path.string(),
                                 kind_of(status.type())));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: It cannot be opened for reading.", path.string()));
  if (path.extension() == ".mwt") {
    throw InputError(
        fmt::format("{0}: That is a trace, what a run is made from. memwall run {1} -o {2}.h5 makes a run of it.",
                    path.string(), path.filename().string(), path.stem().string()));
  }
}

OpenRun open_guarded(const fs::path& path, const LoadProgress& progress) {
  check_run_path(path);
  if (!progress(0)) throw LoadCancelled{};
  if (const auto reason = refused_by_probe(probe_program(), path, {}, progress)) throw InputError(*reason);
  return open_in_viewer(path.string(), progress);
}

RunOpener::RunOpener(QObject* parent) : QObject(parent) {
  connect(&background_, &Background::failed, this,
          [this](const QString&, const QString& sentence) { Q_EMIT failed(sentence); });
}

void RunOpener::open(const QStringList& paths) { start({}, paths); }

void RunOpener::open_beside(const OpenRun& first, const QString& path) { start({first}, {path}); }

void RunOpener::start(std::vector<OpenRun> runs, const QStringList& paths) {
  QStringList names;
  for (const QString& path : paths) names.append(QFileInfo(path).fileName());
  background_.start(
      tr("Opening %1").arg(names.join(tr(" and "))),
      [this, runs, paths](const LoadProgress& progress) {
        std::vector<OpenRun> all = runs;
        for (const QString& path : paths) all.push_back(open_guarded(path.toStdString(), progress));
        return [this, all] { Q_EMIT opened(all); };
      },
      QStringLiteral("open"));
}

}  // namespace memwall::gui
