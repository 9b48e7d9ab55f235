#include "gui/view/window/window_picture.h"

#include <QApplication>
#include <QBuffer>
#include <QEventLoop>
#include <QPixmap>
#include <QTimer>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "sim/files/file_writer.h"
#include "gui/drawing/run_figures.h"
#include "gui/view/window/exit_code.h"
#include "gui/view/window/main_window.h"
#include "sim/error.h"
#include "sim/presentable.h"

namespace memwall::gui {
namespace {

constexpr int kPanelDelay = 300;  // milliseconds, more than the panels'
constexpr int kLargest = 10'000;  // pixels: a picture of more than that is a slip of the keyboard

int tell(const QString& sentence, ExitCode code) {
  std::fprintf(stderr, "memwall-viewer: %s\n", presentable(sentence.toStdString()).c_str());
  return code;
}

// What is painted asks for what it lacks, twice, because what arrives may ask for more; and panels wait a moment before
// they work something out anew.
void settle(MainWindow& window) {
  window.wait();
  window.grab();
  QEventLoop moment;
  QTimer::singleShot(kPanelDelay, &moment, &QEventLoop::quit);
  moment.exec();
  for (int i = 0; i < 2; ++i) {
    window.wait();
    window.grab();
  }
  window.wait();
}

void choose_op(MainWindow& window, const QString& text) {
  const std::uint64_t ops = window.workspace().state().runs.front().outline().ops;
  bool good = false;
  const qulonglong op = text.toULongLong(&good);
  if (!good || op >= ops)
    throw UsageError(
        QString("--op %1: expected the number of an op, 0 to %2.").arg(text).arg(ops == 0 ? 0 : ops - 1).toStdString());
  window.workspace().select(OpRef{0, static_cast<OpId>(op), false});
}

void show_range(MainWindow& window, const QString& text) {
  const OpenRun& run = window.workspace().state().runs.front();
  const auto whole = run.analysis ? run.analysis->run : run.source->whole({});
  const TimeRange range = parse_range(text.toStdString(), *whole);
  window.workspace().change_viewport([&](Viewport& viewport) { viewport.show(range); });
}

void press(MainWindow& window, const QString& key) {
  for (const Command& command : window.commands()) {
    if (!command.keys.contains(key)) continue;
    return command.act ? command.act() : command.by_menu();
  }
  throw UsageError(QString("--press %1: no command has this key; ? in the window lists them.").arg(key).toStdString());
}

void require_other_file(const QString& picture, const QStringList& paths) {
  std::error_code error;
  for (const QString& path : paths)
    if (std::filesystem::equivalent(picture.toStdString(), path.toStdString(), error))
      throw UsageError(
          QString("%1: the picture would replace what is shown; expected another name.").arg(picture).toStdString());
}

int draw(const WindowPicture& picture, const QStringList& paths) {
  ProgramSession program;
  program.theme = picture.theme;
  MainWindow window{SessionStore(program)};
  QString problem;
  QObject::connect(&window.opener(), &RunOpener::failed, [&](const QString& sentence) { problem = sentence; });
  QObject::connect(&window.workspace(), &Workspace::problem, [&](const QString& sentence) { problem = sentence; });
  window.resize(picture.size);
  window.show();
  window.open(paths);
  window.wait();
  if (!problem.isEmpty()) return tell(problem, kUnreadable);
  if (!window.workspace().has_run())
    return tell("a picture needs a run to show: memwall-viewer --picture FILE run.h5.", kUsage);
  if (!picture.op.isEmpty()) choose_op(window, picture.op);
  for (const QString& key : picture.press) {
    press(window, key);
    window.wait();
  }
  if (!picture.range.isEmpty()) show_range(window, picture.range);
  settle(window);
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  if (!window.grab().save(&buffer, "PNG")) return tell("The window cannot be made a picture.", kUsage);
  try {
    FileWriter file(picture.file.toStdString());
    file.append({bytes.constData(), static_cast<std::size_t>(bytes.size())});
    file.commit();
  } catch (const UsageError& error) {
    return tell(QString::fromUtf8(error.what()), kUsage);
  }
  return kDone;
}

}  // namespace

QSize parse_size(const QString& text) {
  const QStringList parts = text.split('x');
  bool wide = false, high = false;
  const QSize size(parts.value(0).toInt(&wide), parts.value(1).toInt(&high));
  if (parts.size() != 2 || !wide || !high || size.width() < 400 || size.height() < 300 || size.width() > kLargest ||
      size.height() > kLargest)
    throw UsageError(QString("--size %1: expected width x height in pixels, 400x300 to %2x%2.")
                         .arg(text)
                         .arg(kLargest)
                         .toStdString());
  return size;
}

int write_window_picture(const WindowPicture& picture, const QStringList& paths) {
  // Without a screen Qt warns of size hints and runtime folders, which is nobody's fault here.
  qInstallMessageHandler([](QtMsgType type, const QMessageLogContext&, const QString& text) {
    if (type == QtCriticalMsg || type == QtFatalMsg) std::fprintf(stderr, "%s\n", text.toUtf8().constData());
  });
  try {
    if (!picture.file.endsWith(".png"))
      throw UsageError(("--picture " + picture.file + ": pictures of the window are written as .png.").toStdString());
    if (picture.theme != "light" && picture.theme != "dark")
      throw UsageError(("--theme " + picture.theme + ": expected light or dark.").toStdString());
    require_other_file(picture.file, paths);
    return draw(picture, paths);
  } catch (const InputError& error) {
    return tell(QString::fromUtf8(error.what()), kUnreadable);
  } catch (const UsageError& error) {
    return tell(QString::fromUtf8(error.what()), kUsage);
  }
}

}  // namespace memwall::gui
