#include "gui/view/workspace.h"

namespace memwall::gui {
Workspace::Workspace(QObject* parent) : QObject(parent) {}
void Workspace::open(std::vector<OpenRun>) {}
void Workspace::close() {}
void Workspace::load_analyses() {}
bool Workspace::analysed() const { return false; }
void Workspace::select(std::optional<OpRef>) {}
void Workspace::go_to(OpRef) {}
void Workspace::select_storage(std::optional<StorageRef>) {}
void Workspace::set_range(std::optional<TimeRange>) {}
void Workspace::set_cursor(std::optional<Time>) {}
void Workspace::go_to_time(Time) {}
void Workspace::set_found(std::vector<OpRef>) {}
void Workspace::show_path(bool) {}
void Workspace::align_to(std::optional<OpRef>) {}
void Workspace::change_viewport(const std::function<void(Viewport&)>&) {}
void Workspace::change_rows(const std::function<void(RowList&)>&) {}
void Workspace::scroll_to(double) {}
void Workspace::set_bookmarks(std::vector<Bookmark>) {}
void Workspace::set_theme(const Theme&) {}
void Workspace::say(const QString&) {}
void Workspace::load_history(std::size_t) {}
}  // namespace memwall::gui
