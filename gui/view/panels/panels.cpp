#include "gui/view/panels/panels.h"

#include <QObject>

namespace memwall::gui {

std::vector<PanelKind> panel_kinds() {
  return {
      {QStringLiteral("details"), QObject::tr("Details"), make_details_panel, true, false},
      {QStringLiteral("live_set"), QObject::tr("Live set"), make_live_set_panel, true, false},
      {QStringLiteral("peak"), QObject::tr("Peak"), make_peak_panel, true, false},
      {QStringLiteral("statistics"), QObject::tr("Statistics"), make_statistics_panel, true, false},
      {QStringLiteral("search"), QObject::tr("Search"), make_search_panel, false, false},
      {QStringLiteral("hierarchy"), QObject::tr("Hierarchy"), make_hierarchy_panel, false, false},
      {QStringLiteral("summary"), QObject::tr("Summary"), make_summary_panel, true, false},
      {QStringLiteral("differences"), QObject::tr("Differences"), make_differences_panel, true, true},
      {QStringLiteral("waterfall"), QObject::tr("Waterfall"), make_waterfall_panel, true, true},
  };
}

}  // namespace memwall::gui
