#include "gui/view/background.h"

namespace memwall::gui {
struct Background::Queue {};
Background::Background(QObject* parent) : QObject(parent) {}
Background::~Background() = default;
void Background::start(const QString&, Work, const QString&, bool) {}
void Background::cancel() {}
void Background::cancel_all() {}
bool Background::idle() const { return true; }
void Background::wait() {}
}  // namespace memwall::gui
