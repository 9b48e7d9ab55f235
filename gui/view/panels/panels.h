// The panels around the canvas. Each is one widget over a Workspace, in a file of its own.
#pragma once

#include <QString>

#include <functional>
#include <vector>

class QWidget;

namespace memwall::gui {

class Workspace;

struct PanelKind {
  QString key;    // "live_set": for the remembered session
  QString title;  // "Live set"
  std::function<QWidget*(Workspace&, QWidget* parent)> make;
  bool shown_at_first = true;
  bool for_comparison = false;  // shown only where two runs are open
};

// Details, live set (table and treemap), peak, statistics, search, hierarchy (figure of the tiers), summary; of two
// runs: differences (table) and waterfall.
std::vector<PanelKind> panel_kinds();

QWidget* make_details_panel(Workspace& workspace, QWidget* parent);
QWidget* make_live_set_panel(Workspace& workspace, QWidget* parent);
QWidget* make_peak_panel(Workspace& workspace, QWidget* parent);
QWidget* make_statistics_panel(Workspace& workspace, QWidget* parent);
QWidget* make_search_panel(Workspace& workspace, QWidget* parent);
QWidget* make_hierarchy_panel(Workspace& workspace, QWidget* parent);
QWidget* make_summary_panel(Workspace& workspace, QWidget* parent);
QWidget* make_differences_panel(Workspace& workspace, QWidget* parent);
QWidget* make_waterfall_panel(Workspace& workspace, QWidget* parent);

}  // namespace memwall::gui
