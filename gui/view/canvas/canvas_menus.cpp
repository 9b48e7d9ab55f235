#include "gui/view/canvas/canvas_menus.h"

#include <QMenu>
#include <QObject>

#include <algorithm>

#include "gui/view/bookmarks.h"

namespace memwall::gui {
namespace {

QString tr(const char* text) { return QObject::tr(text); }

// The row that is shown next to it; itself at the end.
std::size_t neighbour(const RowList& rows, std::size_t row, bool below) {
  const auto shown = rows.shown();
  const auto place = std::find(shown.begin(), shown.end(), row);
  if (place == shown.end()) return row;
  if (below) return place + 1 == shown.end() ? row : *(place + 1);
  return place == shown.begin() ? row : *(place - 1);
}

}  // namespace

void fill_title_menu(QMenu& menu, Workspace& workspace, std::size_t row) {
  if (row >= workspace.state().rows.rows().size()) return;
  const auto change = [&](const QString& text, std::function<void(RowList&)> act) {
    return menu.addAction(text, &workspace, [&workspace, act] { workspace.change_rows(act); });
  };
  const RowList& rows = workspace.state().rows;
  const RowKind kind = rows.rows()[row].kind;
  menu.addSection(QString::fromStdString(rows.rows()[row].title));
  if (const auto rank = rows.rows()[row].rank) {
    const RowList::RankRef whole{rows.rows()[row].run, *rank};
    const bool folded = rows.folded().contains(whole);
    change(folded ? tr("Unfold its rank") : tr("Fold its rank"),
           [whole, folded](RowList& list) { list.fold(whole, !folded); });
    change(tr("Fold all ranks"), [](RowList& list) { list.fold_all(true); });
    change(tr("Unfold all ranks"), [](RowList& list) { list.fold_all(false); });
    menu.addSeparator();
  }
  change(tr("Hide"), [row](RowList& list) { list.row(row).hidden = true; });
  change(tr("Hide all others"), [row](RowList& list) {
    for (std::size_t i = 0; i < list.rows().size(); ++i) list.row(i).hidden = i != row;
  });
  change(tr("Hide all of this kind"), [kind](RowList& list) {
    for (std::size_t i = 0; i < list.rows().size(); ++i) {
      if (list.rows()[i].kind == kind) list.row(i).hidden = true;
    }
  });
  change(tr("Show all"), [](RowList& list) {
    for (std::size_t i = 0; i < list.rows().size(); ++i) list.row(i).hidden = false;
  });
  QMenu* hidden = menu.addMenu(tr("Show"));
  for (std::size_t i = 0; i < rows.rows().size(); ++i) {
    if (!rows.rows()[i].hidden) continue;
    hidden->addAction(QString::fromStdString(rows.rows()[i].title), &workspace, [&workspace, i] {
      workspace.change_rows([i](RowList& list) { list.row(i).hidden = false; });
      workspace.reveal_row(i);
    });
  }
  hidden->setEnabled(!hidden->isEmpty());
  menu.addSeparator();
  const std::size_t above = neighbour(rows, row, false), below = neighbour(rows, row, true);
  change(tr("Move up"), [row, above](RowList& list) { list.move(row, above); })->setEnabled(above != row);
  change(tr("Move down"), [row, below](RowList& list) { list.move(row, below); })->setEnabled(below != row);
  change(tr("Higher"), [row](RowList& list) { list.row(row).height *= 1.5; });
  change(tr("Lower"), [row](RowList& list) { list.row(row).height = std::max(14.0, list.row(row).height / 1.5); });
}

void fill_span_menu(QMenu& menu, Workspace& workspace, const Hit& hit, const std::function<void()>& copy_details) {
  if (hit.op) {
    const OpRef op = *hit.op;
    menu.addAction(tr("Zoom to it"), &workspace, [&workspace, op] {
      workspace.set_range(std::nullopt);
      workspace.select(op);
      workspace.show_chosen();
    });
    menu.addAction(tr("What it waited for"), &workspace, [&workspace, op] {
      workspace.select(op);
      workspace.step_along_dependency(Direction::back);
    });
    menu.addAction(tr("What waited for it"), &workspace, [&workspace, op] {
      workspace.select(op);
      workspace.step_along_dependency(Direction::forward);
    });
    menu.addAction(tr("Copy details"), &workspace, [&workspace, op, copy_details] {
      workspace.select(op);
      copy_details();
    });
    if (workspace.state().runs.size() == 2) {
      menu.addAction(tr("Align both runs here"), &workspace, [&workspace, op] { workspace.align_to(op); });
      if (workspace.state().comparison) {
        const auto other = workspace.state().comparison->counterpart(op);
        QAction* go =
            menu.addAction(tr("Go to its counterpart"), &workspace, [&workspace, other] { workspace.go_to(*other); });
        go->setEnabled(other.has_value());
      }
    }
    menu.addSeparator();
  }
  const Duration shift =
      hit.row && workspace.state().rows.rows()[*hit.row].run == 1 ? workspace.state().shift : Duration{};
  menu.addAction(tr("Cursor here"), &workspace, [&workspace, time = hit.time + shift] { workspace.set_cursor(time); });
  menu.addAction(tr("Mark here"), &workspace, [&workspace, time = hit.time + shift] {
    if (!workspace.state().selection.range) workspace.set_cursor(time);
    add_bookmark(workspace);
  });
}

}  // namespace memwall::gui
