#include "gui/view/window/session_state.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/error.h"

namespace memwall::gui {
namespace {

constexpr int kVersion = 1;
constexpr double kLowestRow = 6, kHighestRow = 1000;  // logical pixels
constexpr qsizetype kMostEntries = 100'000;

[[noreturn]] void refuse(const QString& sentence) { throw InputError(sentence.toStdString()); }

// Picoseconds as text: JSON's numbers do not hold all 64 bits.
QJsonValue to_value(Time time) { return QString::number(time.count()); }

Time time_from(const QJsonValue& value, const char* what) {
  bool good = false;
  const qlonglong picoseconds = value.toString().toLongLong(&good);
  if (!good) refuse(QStringLiteral("\"%1\" is not a whole number of picoseconds.").arg(QLatin1String(what)));
  return Time(picoseconds);
}

TimeRange range_from(const QJsonObject& object) {
  return range_between(time_from(object["begin"], "begin"), time_from(object["end"], "end"));
}

QByteArray bytes_from(const QJsonValue& value) { return QByteArray::fromBase64(value.toString().toLatin1()); }
QString to_text(const QByteArray& bytes) { return QString::fromLatin1(bytes.toBase64()); }

QJsonObject object_from(const QByteArray& text) {
  QJsonParseError error{};
  const QJsonDocument document = QJsonDocument::fromJson(text, &error);
  if (error.error != QJsonParseError::NoError) {
    refuse(QStringLiteral("It is not JSON: %1, at byte %2.").arg(error.errorString()).arg(error.offset));
  }
  if (!document.isObject()) refuse(QStringLiteral("It is JSON, but no object."));
  const int version = document.object()["version"].toInt(-1);
  if (version != kVersion) {
    refuse(QStringLiteral("Its version is %1; this memwall-viewer reads version %2.").arg(version).arg(kVersion));
  }
  return document.object();
}

QJsonArray array_from(const QJsonObject& object, const char* name) {
  QJsonArray array = object[QLatin1String(name)].toArray();
  if (array.size() > kMostEntries) refuse(QStringLiteral("It has %1 %2.").arg(array.size()).arg(QLatin1String(name)));
  return array;
}

double finite(const QJsonValue& value, double low, double high, double otherwise) {
  const double number = value.toDouble(otherwise);
  return std::isfinite(number) ? std::clamp(number, low, high) : otherwise;
}

}  // namespace

QByteArray to_json(const FileSession& session) {
  QJsonArray rows, bookmarks;
  for (const FileSession::Row& row : session.rows) {
    rows.append(QJsonObject{{"key", QString::fromStdString(row.key)}, {"height", row.height}, {"hidden", row.hidden}});
  }
  for (const Bookmark& mark : session.bookmarks) {
    bookmarks.append(QJsonObject{{"begin", to_value(mark.range.begin)},
                                 {"end", to_value(mark.range.end)},
                                 {"label", QString::fromStdString(mark.label)}});
  }
  QJsonObject object{{"version", kVersion},
                     {"rows", rows},
                     {"bookmarks", bookmarks},
                     {"scroll", session.scroll},
                     {"critical_path", session.show_path},
                     {"panels", to_text(session.panels)}};
  if (session.folded) {
    QJsonArray folded;
    for (const auto& [run, rank] : *session.folded) folded.append(QJsonArray{int{run}, int{rank}});
    object["folded_ranks"] = folded;
  }
  if (session.visible) {
    object["visible"] =
        QJsonObject{{"begin", to_value(session.visible->begin)}, {"end", to_value(session.visible->end)}};
  }
  return QJsonDocument(object).toJson();
}

QByteArray to_json(const ProgramSession& session) {
  const QJsonObject object{{"version", kVersion},
                           {"geometry", to_text(session.geometry)},
                           {"panels", to_text(session.panels)},
                           {"theme", session.theme},
                           {"legend", session.legend},
                           {"recent", QJsonArray::fromStringList(session.recent)}};
  return QJsonDocument(object).toJson();
}

FileSession file_session_from_json(const QByteArray& text) {
  const QJsonObject object = object_from(text);
  FileSession session;
  for (const QJsonValue& value : array_from(object, "rows")) {
    session.rows.push_back({value["key"].toString().toStdString(),
                            finite(value["height"], kLowestRow, kHighestRow, CanvasRow{}.height),
                            value["hidden"].toBool()});
  }
  for (const QJsonValue& value : array_from(object, "bookmarks")) {
    session.bookmarks.push_back({range_from(value.toObject()), value["label"].toString().toStdString()});
  }
  if (object.contains("visible")) session.visible = range_from(object["visible"].toObject());
  session.scroll = finite(object["scroll"], 0, 1e9, 0);
  session.show_path = object["critical_path"].toBool();
  session.panels = bytes_from(object["panels"]);
  if (object.contains("folded_ranks")) {
    session.folded.emplace();
    for (const QJsonValue& value : array_from(object, "folded_ranks")) {
      const int run = value[0].toInt(-1), rank = value[1].toInt(-1);
      if (run >= 0 && run <= 1 && rank >= 0 && rank <= std::numeric_limits<std::uint16_t>::max())
        session.folded->insert({static_cast<std::uint8_t>(run), static_cast<std::uint16_t>(rank)});
    }
  }
  return session;
}

ProgramSession program_session_from_json(const QByteArray& text) {
  const QJsonObject object = object_from(text);
  ProgramSession session;
  session.geometry = bytes_from(object["geometry"]);
  session.panels = bytes_from(object["panels"]);
  session.theme = object["theme"].toString();
  session.legend = object["legend"].toBool(true);
  if (session.theme != "light" && session.theme != "dark") session.theme = "system";
  for (const QJsonValue& value : array_from(object, "recent")) {
    if (value.isString() && session.recent.size() < kMostRecent) session.recent.append(value.toString());
  }
  return session;
}

FileSession session_of(const CanvasState& state) {
  FileSession session;
  for (const CanvasRow& row : state.rows.rows()) {
    session.rows.push_back({row.key(), row.height, row.hidden});
  }
  if (!state.runs.empty()) session.visible = state.viewport.visible();
  session.bookmarks = state.bookmarks;
  session.scroll = state.scroll;
  if (!state.rows.ranks().empty()) session.folded = state.rows.folded();
  session.show_path = state.show_path;
  return session;
}

void arrange(RowList& rows, const FileSession& session) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < session.rows.size(); ++i) places.emplace(session.rows[i].key, i);
  struct Placed {
    CanvasRow row;
    std::size_t place = 0;
  };
  std::vector<Placed> placed;
  std::size_t last = 0;
  for (const CanvasRow& row : rows.rows()) {
    const auto known = places.find(row.key());
    if (known != places.end()) last = known->second;
    placed.push_back({row, last});
    if (known == places.end()) continue;
    placed.back().row.height = session.rows[last].height;
    // Whether a storage's life is shown depends on whether one is chosen, which is not remembered.
    if (row.kind != RowKind::residency) placed.back().row.hidden = session.rows[last].hidden;
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.place < b.place; });
  while (!rows.rows().empty()) rows.remove(rows.rows().size() - 1);
  for (Placed& row : placed) rows.add(std::move(row.row), rows.rows().size());
  if (!session.folded) return;
  rows.fold_all(false);
  for (const RowList::RankRef& rank : *session.folded) rows.fold(rank, true);
}

}  // namespace memwall::gui
