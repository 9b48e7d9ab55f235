#include "gui/model/span_cache.h"

#include <algorithm>

#include "gui/model/navigation.h"
#include "gui/model/readable_name.h"

namespace memwall::gui {
namespace {

constexpr std::size_t kMostNames = std::size_t{1} << 16, kMostRelations = 8;

}  // namespace

SpanCache::SpanCache(std::shared_ptr<const RunSource> source, std::size_t budget)
    : source_(std::move(source)), budget_(budget), lanes_(source_->outline()), level_of_detail_(source_) {
  const RunOutline& outline = source_->outline();
  searches_.reserve(outline.lanes.size());
  for (std::size_t lane = 0; lane < outline.lanes.size(); ++lane) searches_.emplace_back(outline.blocks[lane]);
}

std::uint32_t SpanCache::number_of(std::uint32_t lane, const LaneBlock& block) const {
  return source_->outline().lanes[lane].kind == RunLaneKind::pager ? kMoveBlocks + block.block : block.block;
}

std::shared_ptr<const LoadedBlock> SpanCache::find(std::uint32_t block) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(block);
  if (at == entries_.end()) return nullptr;
  ages_.splice(ages_.begin(), ages_, at->second.age);
  return at->second.block;
}

std::shared_ptr<const LoadedBlock> SpanCache::load(std::uint32_t number) {
  if (!is_block(number)) {
    number == kRelations ? load_relations() : load_wanted_uses();
    return std::make_shared<const LoadedBlock>();
  }
  if (auto block = find(number)) return block;
  const std::shared_ptr<const LoadedBlock> block = read(number);
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(number);
  if (at != entries_.end()) return at->second.block;  // another thread was faster
  ages_.push_front(number);
  entries_.emplace(number, Entry{block, ages_.begin()});
  resident_ += block->bytes();
  // The newest stays whatever it takes: somebody looks at it.
  while (resident_ > budget_ && ages_.size() > 1) {
    const auto oldest = entries_.find(ages_.back());
    resident_ -= oldest->second.block->bytes();
    entries_.erase(oldest);
    ages_.pop_back();
  }
  return block;
}

std::shared_ptr<const LoadedBlock> SpanCache::read(std::uint32_t number) {
  if (number >= kMoveBlocks) {
    const std::uint64_t first = std::uint64_t{number - kMoveBlocks} * kSpanBlock;
    const std::uint64_t moves = source_->outline().moves;
    const std::uint64_t count = first < moves ? std::min<std::uint64_t>(kSpanBlock, moves - first) : 0;
    return std::make_shared<const LoadedBlock>(lanes_.sorted(source_->moves(first, count)));
  }
  auto block = std::make_shared<LoadedBlock>(lanes_.sorted(source_->spans(number)));
  read_names(*block);
  return block;
}

void SpanCache::read_names(LoadedBlock& block) {
  std::vector<StringId> ids = block.spans.name;
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  block.names.reserve(ids.size());
  for (const StringId id : ids) {
    if (id == 0) continue;
    std::shared_ptr<const std::string> name;
    {
      const std::lock_guard lock(mutex_);
      const auto at = names_.find(id);
      if (at != names_.end()) name = at->second;
    }
    if (!name) {
      name = std::make_shared<const std::string>(readable_name(source_->text(id)));
      const std::lock_guard lock(mutex_);
      if (names_.size() >= kMostNames) names_.clear();
      names_.emplace(id, name);
    }
    block.names.emplace_back(id, std::move(name));
  }
}

std::shared_ptr<const OpRelations> SpanCache::find_relations(OpId op) const {
  const std::lock_guard lock(mutex_);
  for (const auto& known : relations_)
    if (known->detail.id == op) return known;
  wanted_ = op;
  return nullptr;
}

void SpanCache::load_relations() {
  OpId op = kNoOp;
  {
    const std::lock_guard lock(mutex_);
    op = wanted_;
  }
  if (op >= source_->outline().ops) return;
  auto relations = std::make_shared<OpRelations>();
  relations->detail = source_->op(op);
  // Most ops are the cause of the next call and of nothing else: which part waited for which stands in their records.
  for (const OpId id : source_->followers(op, kMostFollowers)) {
    const OpDetail detail = source_->op(id);
    for (const bool call : {false, true})
      if (const auto cause = cause_of(detail, {0, id, call}); cause && cause->op == op)
        relations->followers.push_back({id, call, cause->call});
  }
  const std::lock_guard lock(mutex_);
  relations_.push_front(std::move(relations));
  if (relations_.size() > kMostRelations) relations_.pop_back();
}

std::shared_ptr<const StorageUses> SpanCache::find_uses(StorageId storage) const {
  if (auto known = uses_.find(storage)) return known;
  const std::lock_guard lock(mutex_);
  wanted_uses_ = storage;
  return nullptr;
}

void SpanCache::load_wanted_uses() {
  StorageId storage = kNoStorage;
  {
    const std::lock_guard lock(mutex_);
    storage = wanted_uses_;
  }
  if (storage < source_->outline().storages) load_uses(storage);
}

std::size_t SpanCache::resident_bytes() const {
  std::size_t searches = 0;
  for (const LaneBlockSearch& search : searches_) searches += sizeof search + search.blocks().size() * 2 * sizeof(Time);
  const std::lock_guard lock(mutex_);
  return resident_ + level_of_detail_.resident_bytes() + searches;
}

}  // namespace memwall::gui
