#include "gui/view/found_table.h"

#include <algorithm>

#include "gui/model/storage_name.h"
#include "gui/paint/qt_color.h"
#include "gui/view/value_text.h"
#include "traces/figure/palette.h"

namespace memwall::gui {
namespace {

const QString kUnknown = QStringLiteral("…");

template <class Facts>
std::vector<std::size_t> unknown_rows(const ValueTable& table, const Facts& facts, int first, int last) {
  std::vector<std::size_t> rows;
  for (int line = std::max(0, first); line <= last && line < table.lines(); ++line)
    if (!facts.contains(table.row_at(line))) rows.push_back(table.row_at(line));
  return rows;
}

std::string_view color_word(OpKind kind) {
  return runs_on_device(kind) ? to_string(work_word(kind, Phase::unknown)) : "host";
}

}  // namespace

FoundOp facts_of(const OpenRun& run, OpRef op) {
  const OpDetail detail = run.source->op(op.op);
  const OpRecord& record = detail.record;
  const bool call = op.call || record.start == kNever;
  return {!detail.name.empty()            ? detail.name
          : !detail.operator_name.empty() ? detail.operator_name
                                          : std::string(to_string(detail.op.kind)),
          detail.op.kind, call ? record.host_start : record.start,
          call ? record.host_end - record.host_start : record.end - record.start};
}

FoundStorage facts_of(const OpenRun& run, StorageRef storage) {
  const StorageName name = name_of(run, storage.storage);
  FoundStorage facts{name.label, name.module, StorageKind::unknown, {}};
  if (!run.history) return facts;
  facts.kind = run.history->storages().kind[storage.storage];
  facts.bytes = run.history->storages().bytes[storage.storage];
  return facts;
}

FoundOpsTable::FoundOpsTable(QObject* parent)
    : ValueTable({{tr("Name"), false, {}},
                  {tr("Kind"), false, {}},
                  {tr("When"), true, tr("Begin of its work, or of its call where it has no work")},
                  {tr("How long"), true, {}},
                  {tr("Run"), false, {}}},
                 parent) {}

void FoundOpsTable::show(std::vector<OpRef> ops, std::vector<std::pair<QString, Time>> runs) {
  change_rows([&] {
    ops_ = std::move(ops);
    runs_ = std::move(runs);
    facts_.clear();
  });
}

std::vector<std::size_t> FoundOpsTable::unknown_of_lines(int first, int last) const {
  return unknown_rows(*this, facts_, first, last);
}

void FoundOpsTable::add_facts(const std::vector<std::pair<std::size_t, FoundOp>>& facts) {
  facts_.insert(facts.begin(), facts.end());
  rows_know_more();
}

QString FoundOpsTable::text(std::size_t row, int column) const {
  const OpRef op = ops_[row];
  if (column == which_run) return runs_.size() > 1 ? runs_[op.run].first : QString();
  const auto found = facts_.find(row);
  if (found == facts_.end()) return kUnknown;
  const FoundOp& facts = found->second;
  switch (column) {
    case name:
      return text_of(facts.name);
    case kind:
      return text_of(to_string(facts.kind));
    case when:
      return instant_text(facts.begin, runs_[op.run].second);
    default:
      return time_text(facts.time);
  }
}

std::optional<QColor> FoundOpsTable::swatch(std::size_t row, int column) const {
  const auto found = facts_.find(row);
  if (column != kind || found == facts_.end()) return std::nullopt;
  return qt_color(palette::color_of(color_word(found->second.kind)));
}

FoundStoragesTable::FoundStoragesTable(QObject* parent)
    : ValueTable({{tr("Name"), false, {}},
                  {tr("Kind"), false, {}},
                  {tr("Bytes"), true, {}},
                  {tr("Module"), false, {}},
                  {tr("Run"), false, {}}},
                 parent) {}

void FoundStoragesTable::show(std::vector<StorageRef> storages, std::vector<std::pair<QString, Time>> runs) {
  change_rows([&] {
    storages_ = std::move(storages);
    runs_ = std::move(runs);
    facts_.clear();
  });
}

std::vector<std::size_t> FoundStoragesTable::unknown_of_lines(int first, int last) const {
  return unknown_rows(*this, facts_, first, last);
}

void FoundStoragesTable::add_facts(const std::vector<std::pair<std::size_t, FoundStorage>>& facts) {
  facts_.insert(facts.begin(), facts.end());
  rows_know_more();
}

QString FoundStoragesTable::text(std::size_t row, int column) const {
  if (column == which_run) return runs_.size() > 1 ? runs_[storages_[row].run].first : QString();
  const auto found = facts_.find(row);
  if (found == facts_.end()) return kUnknown;
  const FoundStorage& facts = found->second;
  switch (column) {
    case name:
      return facts.name.empty() ? tr("storage %1").arg(storages_[row].storage) : text_of(facts.name);
    case kind:
      return facts.bytes ? text_of(to_string(facts.kind)) : kUnknown;
    case bytes:
      return facts.bytes ? bytes_text(*facts.bytes) : kUnknown;
    default:
      return text_of(facts.module);
  }
}

std::optional<QColor> FoundStoragesTable::swatch(std::size_t row, int column) const {
  const auto found = facts_.find(row);
  if (column != kind || found == facts_.end() || !found->second.bytes) return std::nullopt;
  return qt_color(palette::color_of(to_string(found->second.kind)));
}

}  // namespace memwall::gui
