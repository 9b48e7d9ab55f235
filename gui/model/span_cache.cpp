#include "gui/model/span_cache.h"

namespace memwall::gui {
std::size_t LoadedBlock::bytes() const { return spans.bytes(); }
SpanCache::SpanCache(std::shared_ptr<const RunSource> source, std::size_t budget)
    : source_(std::move(source)), budget_(budget) {}
std::shared_ptr<const LoadedBlock> SpanCache::find(std::uint32_t) const { return nullptr; }
std::shared_ptr<const LoadedBlock> SpanCache::load(std::uint32_t) { return nullptr; }
std::size_t SpanCache::resident_bytes() const { return resident_ + budget_ * 0; }
}  // namespace memwall::gui
