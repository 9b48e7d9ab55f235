#include "gui/view/panels/found_table.h"

#include <algorithm>

#include "gui/model/storage_name.h"
#include "gui/view/value_text.h"
#include "gui/view/widget_colors.h"

namespace memwall::gui {
namespace {

const QString kUnknown = QStringLiteral("…");

std::string_view color_word(OpKind kind) {
  return runs_on_device(kind) ? to_string(work_category(kind, Phase::unknown)) : "host";
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
    : FoundTable({{tr("Name"), false, {}},
                  {tr("Kind"), false, {}},
                  {tr("When"), true, tr("Begin of its work, or of its call where it has no work")},
                  {tr("How long"), true, {}},
                  {tr("Run"), false, {}}},
                 parent) {}

QString FoundOpsTable::text(std::size_t row, int column) const {
  if (column == which_run) return run_name(row);
  const FoundOp* const known = facts(row);
  if (!known) return kUnknown;
  switch (column) {
    case name:
      return text_of(known->name);
    case kind:
      return text_of(to_string(known->kind));
    case when:
      return instant_text(known->begin, run_end(row));
    default:
      return time_text(known->time);
  }
}

std::optional<QColor> FoundOpsTable::swatch(std::size_t row, int column) const {
  const auto* const known = facts(row);
  if (column != kind || !known) return std::nullopt;
  return word_color(color_word(known->kind));
}

FoundStoragesTable::FoundStoragesTable(QObject* parent)
    : FoundTable({{tr("Name"), false, {}},
                  {tr("Kind"), false, {}},
                  {tr("Bytes"), true, {}},
                  {tr("Module"), false, {}},
                  {tr("Run"), false, {}}},
                 parent) {}

QString FoundStoragesTable::text(std::size_t row, int column) const {
  if (column == which_run) return run_name(row);
  const FoundStorage* const known = facts(row);
  if (!known) return kUnknown;
  switch (column) {
    case name:
      return known->name.empty() ? tr("storage %1").arg(ref(row).storage) : text_of(known->name);
    case kind:
      return known->bytes ? text_of(to_string(known->kind)) : kUnknown;
    case bytes:
      return known->bytes ? bytes_text(*known->bytes) : kUnknown;
    default:
      return text_of(known->module);
  }
}

std::optional<QColor> FoundStoragesTable::swatch(std::size_t row, int column) const {
  const auto* const known = facts(row);
  if (column != kind || !known || !known->bytes) return std::nullopt;
  return word_color(to_string(known->kind));
}

}  // namespace memwall::gui
