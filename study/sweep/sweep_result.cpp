// What the points of a study say together.
#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "study/sweep/sweep.h"

namespace memwall {
namespace {

void replace_all(std::string& text, const std::string& part, const char* by) {
  for (std::size_t at = 0; !part.empty() && (at = text.find(part, at)) != std::string::npos; ++at)
    text.replace(at, part.size(), by);
}

// What differs from point to point makes one cause many: values of axes and their parts, quoted names, numbers.
std::string cause_of(std::string sentence, const PointValues& values) {
  for (const std::string& value : values)
    for (std::size_t begin = 0; begin < value.size();) {
      const std::size_t end = std::min(value.find_first_of(":=,+ ", begin), value.size());
      if (end - begin > 2) replace_all(sentence, value.substr(begin, end - begin), "#");
      begin = end + 1;
    }
  if (const std::size_t guess = sentence.find(" Did you mean '"); guess != std::string::npos)
    sentence.erase(guess, sentence.find("'?", guess) + 2 - guess);
  std::string cause;
  bool is_quoted = false;
  for (const char c : sentence) {
    if (c == '"') is_quoted = !is_quoted;
    const bool varies = is_quoted || std::isdigit(static_cast<unsigned char>(c)) || c == '.';
    if (!varies)
      cause += c;
    else if (cause.empty() || cause.back() != '#')
      cause += '#';
  }
  return cause;
}

// Of a machine's own numbers the run repeats some: they say nothing of what came of them.
bool is_consequence(const std::string& field) {
  const std::string last = field.substr(field.rfind('.') + 1);
  if (field.starts_with("tiers.")) return last.starts_with("peak_") || last == "missing_bytes";
  if (field.starts_with("links.")) return last == "bytes";
  return true;
}

bool differ(const PointRecord& one, const PointRecord& other) {
  for (std::size_t i = 0; i < one.fields.size(); ++i) {
    const auto& [name, value] = one.fields[i];
    if (!is_consequence(name)) continue;
    const bool is_at_hand = i < other.fields.size() && other.fields[i].first == name;  // mostly
    if ((is_at_hand ? std::optional(other.fields[i].second) : other.find(name)) != value) return true;
  }
  return false;
}

}  // namespace

std::size_t SweepResult::failures() const {
  return static_cast<std::size_t>(std::ranges::count_if(points, [](const SweepPoint& p) { return !p.ran(); }));
}

std::size_t SweepResult::kept() const {
  return static_cast<std::size_t>(std::ranges::count_if(points, &SweepPoint::is_kept));
}

std::size_t SweepResult::ties() const {
  if (!best) return 0;
  const SweepPoint& first = points[*best];
  return static_cast<std::size_t>(std::ranges::count_if(
      points, [&](const SweepPoint& p) { return &p != &first && p.meets && p.objective == first.objective; }));
}

std::vector<std::pair<std::string, std::size_t>> SweepResult::failures_by_cause() const {
  std::vector<std::pair<std::string, std::size_t>> groups;
  std::map<std::string, std::size_t> group_of;
  for (const SweepPoint& point : points) {
    if (point.ran()) continue;
    const auto [at, is_new] = group_of.try_emplace(cause_of(point.record.error, point.values), groups.size());
    if (is_new) groups.emplace_back(point.record.error, 0);
    ++groups[at->second].second;
  }
  std::ranges::stable_sort(groups, std::greater{}, &std::pair<std::string, std::size_t>::second);
  return groups;
}

std::vector<std::string> SweepResult::effectless_axes() const {
  std::vector<std::string> effectless;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    std::map<PointValues, const SweepPoint*> first_with;
    bool was_compared = false, differs = false;
    for (const SweepPoint& point : points) {
      if (point.values[axis].empty() || !point.ran()) continue;
      PointValues others = point.values;
      others[axis].clear();
      const auto [at, is_new] = first_with.try_emplace(std::move(others), &point);
      if (is_new) continue;
      was_compared = true;
      differs = differs || differ(at->second->record, point.record);
    }
    if (was_compared && !differs) effectless.push_back(axes[axis]);
  }
  return effectless;
}

}  // namespace memwall
