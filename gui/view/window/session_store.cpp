#include "gui/view/window/session_store.h"

#include <QCryptographicHash>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QStandardPaths>

#include "sim/files/file_writer.h"
#include "sim/error.h"

namespace memwall::gui {
namespace {

constexpr qint64 kMostBytes = 16 << 20;

// The content; nothing if there is no such file or it cannot be used.
std::optional<QByteArray> content(const QString& path, QString& complaint) {
  if (!QFileInfo(path).isFile()) return std::nullopt;
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) {
    complaint = QObject::tr("What was remembered in %1 cannot be read: %2.").arg(path, file.errorString());
    return std::nullopt;
  }
  if (file.size() > kMostBytes) {
    complaint = QObject::tr("What was remembered in %1 is ignored: it has %2 bytes.").arg(path).arg(file.size());
    return std::nullopt;
  }
  return file.readAll();
}

QString write(const QString& path, const QByteArray& text) {
  QDir().mkpath(QFileInfo(path).path());
  try {
    FileWriter file(path.toStdString());
    file.append({text.constData(), static_cast<std::size_t>(text.size())});
    file.commit();
    return {};
  } catch (const UsageError& error) {
    return QObject::tr("What you arranged cannot be remembered: %1").arg(QString::fromUtf8(error.what()));
  }
}

template <typename Session, typename Parse>
std::optional<Session> read(const QString& path, QString& complaint, const Parse& parse) {
  const auto text = content(path, complaint);
  if (!text) return std::nullopt;
  try {
    return parse(*text);
  } catch (const InputError& error) {
    complaint = QObject::tr("What was remembered in %1 is ignored: %2").arg(path, QString::fromUtf8(error.what()));
  }
  return std::nullopt;
}

}  // namespace

SessionStore::SessionStore() : folder_(QStandardPaths::writableLocation(QStandardPaths::AppDataLocation)) {}

QString SessionStore::program_path() const { return QDir(folder_).filePath("viewer.json"); }

QString SessionStore::file_path(const QStringList& paths) const {
  QCryptographicHash hash(QCryptographicHash::Sha256);
  for (const QString& path : paths) {
    const QString canonical = QFileInfo(path).canonicalFilePath();
    hash.addData((canonical.isEmpty() ? path : canonical).toUtf8() + '\n');
  }
  return QDir(folder_).filePath("sessions/" + QString::fromLatin1(hash.result().toHex().left(32)) + ".json");
}

ProgramSession SessionStore::program(QString& complaint) const {
  if (fixed_) return *fixed_;
  const auto session = read<ProgramSession>(program_path(), complaint, program_session_from_json);
  return session.value_or(ProgramSession{{}, {}, "system", {}});
}

std::optional<FileSession> SessionStore::file(const QStringList& paths, QString& complaint) const {
  if (fixed_) return std::nullopt;
  return read<FileSession>(file_path(paths), complaint, file_session_from_json);
}

QString SessionStore::keep(const ProgramSession& session) const {
  return fixed_ ? QString() : write(program_path(), to_json(session));
}

QString SessionStore::keep(const QStringList& paths, const FileSession& session) const {
  if (fixed_) return {};
  return write(file_path(paths), to_json(session));
}

}  // namespace memwall::gui
