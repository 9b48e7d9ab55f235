#include "gui/view/panels/live_set_table.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "gui/view/value_text.h"
#include "gui/view/widget_colors.h"

namespace memwall::gui {
namespace {

constexpr std::size_t kPhaseCount = 5;

}  // namespace

LiveSetTable::LiveSetTable(QObject* parent)
    : ValueTable({{tr("Name"), false, tr("The label of the storage, else the op that wrote it first")},
                  {tr("Kind"), false, {}},
                  {tr("Bytes"), true, tr("As requested, without the allocator's rounding")},
                  {tr("Module"), false, tr("Of the op that wrote it first")},
                  {tr("Phase"), false, tr("Of the op that wrote it first")},
                  {tr("Since"), true, tr("When its residency in this tier began")},
                  {tr("Until"), true, tr("When its residency in this tier ends")}},
                 parent),
      set_(std::make_shared<TierLiveSet>()),
      texts_{QString()} {
  numbers_.emplace("", 0);
}

void LiveSetTable::show(std::shared_ptr<const TierLiveSet> set, Time end) {
  change_rows([&] {
    set_ = std::move(set);
    end_ = end;
  });
}

void LiveSetTable::forget_names() {
  change_rows([&] {
    names_.clear();
    numbers_.clear();
    numbers_.emplace("", 0);
    texts_.assign(1, QString());
  });
}

void LiveSetTable::add_names(const std::vector<NamedStorage>& names) {
  const auto add = [&] {
    for (const NamedStorage& named : names)
      names_[named.storage] = {number_of(named.name.label), number_of(named.name.module), named.name.phase};
  };
  // Without a filter or an order by name, rows stay where they are: what is selected and scrolled to stays too.
  if (needs_names()) {
    change_rows(add);
  } else {
    add();
    rows_know_more();
  }
}

std::uint32_t LiveSetTable::number_of(const std::string& text) {
  const auto [found, is_new] = numbers_.emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(text_of(text));
  return found->second;
}

const LiveSetTable::Known* LiveSetTable::known(std::size_t row) const {
  const auto found = names_.find(set_->rows[row].storage);
  return found == names_.end() ? nullptr : &found->second;
}

std::vector<StorageId> LiveSetTable::unnamed_of_lines(int first, int last) const {
  std::vector<StorageId> missing;
  for (int line = std::max(0, first); line <= last && line < lines(); ++line)
    if (known(row_at(line)) == nullptr) missing.push_back(set_->rows[row_at(line)].storage);
  return missing;
}

std::vector<StorageId> LiveSetTable::unnamed_of_largest(std::size_t count) const {
  std::vector<StorageId> missing;
  for (std::size_t row = 0; row < rows() && row < count; ++row)
    if (known(row) == nullptr) missing.push_back(set_->rows[row].storage);
  return missing;
}

std::vector<StorageId> LiveSetTable::unnamed(std::size_t most) const {
  std::vector<StorageId> missing;
  for (std::size_t row = 0; row < rows() && missing.size() < most; ++row)
    if (known(row) == nullptr) missing.push_back(set_->rows[row].storage);
  return missing;
}

std::size_t LiveSetTable::named() const {
  std::size_t count = 0;
  for (std::size_t row = 0; row < rows(); ++row) count += known(row) != nullptr;
  return count;
}

QString LiveSetTable::text(std::size_t row, int column) const {
  const LiveRow& r = set_->rows[row];
  const bool of_name = column == name || column == module || column == phase;
  const Known* const all = of_name ? known(row) : nullptr;
  if (of_name && all == nullptr) return QStringLiteral("…");
  switch (column) {
    case name:
      return all->label == 0 ? tr("storage %1").arg(r.storage) : texts_[all->label];
    case kind:
      return text_of(to_string(r.kind));
    case bytes:
      return bytes_text(r.bytes);
    case module:
      return texts_[all->module];
    case phase:
      return all->phase == Phase::unknown ? QString() : text_of(to_string(all->phase));
    case since:
      return instant_text(r.begin, end_);
    case until:
      return r.end >= end_ ? tr("the end") : instant_text(r.end, end_);
    default:
      return {};
  }
}

QString LiveSetTable::plain(std::size_t row, int column) const {
  const LiveRow& r = set_->rows[row];
  if (column == bytes) return QString::number(r.bytes);
  if (column == since) return plain_text(r.begin);
  if (column == until) return plain_text(std::min(r.end, end_));
  return text(row, column);
}

std::int64_t LiveSetTable::key(std::size_t row, int column) const {
  const LiveRow& r = set_->rows[row];
  return column == bytes ? r.bytes : column == since ? r.begin.count() : r.end.count();
}

std::optional<QColor> LiveSetTable::swatch(std::size_t row, int column) const {
  if (column == kind) return word_color(to_string(set_->rows[row].kind));
  return std::nullopt;
}

std::vector<std::int64_t> LiveSetTable::sort_keys(int column) const {
  if (column == bytes || column == since || column == until) return ValueTable::sort_keys(column);
  std::vector<std::int64_t> keys(rows());
  if (column == kind) {
    for (std::size_t row = 0; row < keys.size(); ++row) keys[row] = static_cast<int>(set_->rows[row].kind);
    return keys;
  }
  // Few texts, many rows: the texts are put in order once. What is not known comes last.
  std::vector<std::uint32_t> order(texts_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int compared = texts_[a].compare(texts_[b], Qt::CaseInsensitive);
    return compared != 0 ? compared < 0 : texts_[a] < texts_[b];
  });
  std::vector<std::int64_t> rank(texts_.size());
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<std::int64_t>(i);
  for (std::size_t row = 0; row < keys.size(); ++row) {
    const Known* const all = known(row);
    keys[row] = all == nullptr    ? static_cast<std::int64_t>(texts_.size() + kPhaseCount)
                : column == phase ? static_cast<std::int64_t>(all->phase)
                                  : rank[column == name ? all->label : all->module];
  }
  return keys;
}

std::vector<bool> LiveSetTable::matching(const QStringList& words) const {
  // Which texts hold which word: at most 64 words count, as bits.
  const qsizetype counted = std::min<qsizetype>(words.size(), 64);
  const auto bits = [&](const QString& text) {
    const QString lower = text.toLower();
    std::uint64_t held = 0;
    for (qsizetype i = 0; i < counted; ++i)
      if (lower.contains(words[i])) held |= std::uint64_t{1} << i;
    return held;
  };
  std::vector<std::uint64_t> of_text(texts_.size());
  for (std::size_t i = 0; i < texts_.size(); ++i) of_text[i] = bits(texts_[i]);
  std::array<std::uint64_t, kStorageKinds> of_kind{};
  for (std::size_t k = 0; k < of_kind.size(); ++k) of_kind[k] = bits(text_of(to_string(static_cast<StorageKind>(k))));
  std::array<std::uint64_t, kPhaseCount> of_phase{};
  for (std::size_t p = 1; p < of_phase.size(); ++p) of_phase[p] = bits(text_of(to_string(static_cast<Phase>(p))));
  const std::uint64_t all_words = counted == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << counted) - 1;
  std::vector<bool> kept(rows());
  for (std::size_t row = 0; row < kept.size(); ++row) {
    const Known* const all = known(row);
    std::uint64_t held = of_kind[static_cast<std::size_t>(set_->rows[row].kind)];
    if (all != nullptr)
      held |= of_text[all->label] | of_text[all->module] | of_phase[static_cast<std::size_t>(all->phase)];
    if (all != nullptr && all->label == 0) held |= bits(text(row, name));
    kept[row] = (held & all_words) == all_words;
  }
  return kept;
}

}  // namespace memwall::gui
