// The view "ranks": who waits for whom, groups and links, by the place of the GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "gui/drawing/run_figure_parts.h"
#include "sim/error.h"
#include "sim/machine/gpu_place.h"
#include "sim/trace/ranks.h"
#include "traces/figure/axis.h"
#include "traces/figure/ranks_figure.h"
#include "traces/run/analysis/rank_meetings.h"
#include "traces/run/analysis/rank_summary.h"

namespace memwall::gui {
namespace {

// Rows that a picture has of each kind at most.
constexpr std::size_t kMostRanks = 64, kMostGroups = 32, kMostLinks = 64;

std::string time_text(double seconds) { return format_time(from_seconds(seconds)); }

// The first `most` of the items by weight, largest first, in their order again.
template <class Weight>
std::vector<std::size_t> heaviest(std::size_t count, std::size_t most, Weight weight) {
  std::vector<std::size_t> chosen(count);
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  if (count <= most) return chosen;
  std::stable_sort(chosen.begin(), chosen.end(), [&](std::size_t a, std::size_t b) { return weight(a) > weight(b); });
  chosen.resize(most);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

class RanksPicture {
 public:
  explicit RanksPicture(const Run& run)
      : run_(run),
        ranks_(run.trace->rank_table),
        places_(run.machine.one),
        summaries_(rank_summaries(run)),
        meetings_(rank_meetings(run)) {
    chart_.title = "Ranks, groups and links by place";
    chart_.subtitle = headline_of(run);
  }

  RanksChart chart() && {
    add_ranks();
    add_groups();
    add_links();
    for (auto& [node, place] : by_node_) chart_.places.push_back(std::move(place));
    if (!common_.links.empty()) chart_.places.push_back(std::move(common_));
    return std::move(chart_);
  }

 private:
  std::uint32_t node_of(std::size_t rank) const { return places_.of(ranks_[rank].number).node; }

  RankPlace& place_of_node(std::uint32_t node) {
    RankPlace& place = by_node_[node];
    if (places_.node_size() > 0) place.name = fmt::format("node {}", node);
    return place;
  }

  // "rank 11, GPU 3, rail 3".
  std::string name_of(std::size_t rank) const {
    const Rank& its = ranks_[rank];
    std::string name = fmt::format("rank {}", its.number);
    if (!its.stands_for.empty()) name += fmt::format(" (for {})", its.stands_for.size() + 1);
    return places_.node_size() == 0 ? name : name + ", " + places_.within_node(its.number);
  }

  RankRow row_of(std::size_t rank) const {
    RankRow row{.name = name_of(rank), .held_up = to_seconds(summaries_[rank].held_up), .note = {}};
    const PeerWait* longest = nullptr;
    for (const PeerWait& wait : meetings_.waits) {
      if (wait.waiter != rank) continue;
      (node_of(wait.last) == node_of(rank) ? row.waits_near : row.waits_far) += to_seconds(wait.time);
      if (longest == nullptr || to_seconds(wait.time) > to_seconds(longest->time)) longest = &wait;
    }
    row.note = longest == nullptr
                   ? "waits for nobody"
                   : fmt::format("waits {}, {} of it for {}", time_text(row.waits_near + row.waits_far),
                                 time_text(to_seconds(longest->time)), places_.rank_text(ranks_[longest->last].number));
    const RankSummary& summary = summaries_[rank];
    if (summary.collectives > 0) row.note += fmt::format("; came last to {} of {}", summary.last, summary.collectives);
    return row;
  }

  void add_ranks() {
    const auto shown = heaviest(ranks_.size(), kMostRanks, [&](std::size_t rank) {
      return to_seconds(summaries_[rank].peer_wait) + to_seconds(summaries_[rank].held_up);
    });
    for (const std::size_t rank : shown) place_of_node(node_of(rank)).ranks.push_back(row_of(rank));
    if (shown.size() < ranks_.size())
      chart_.left_out.push_back(fmt::format("Of {} ranks those {} stand here that wait or hold others up longest.",
                                            ranks_.size(), shown.size()));
  }

  void add_groups() {
    const auto shown = heaviest(meetings_.groups.size(), kMostGroups,
                                [&](std::size_t g) { return to_seconds(meetings_.groups[g].waited); });
    for (const std::size_t g : shown) {
      const GroupMeetings& its = meetings_.groups[g];
      const std::string place =
          its.group.members.empty() ? fmt::format("{} ranks", its.group.ranks) : places_.group_text(its.group.members);
      chart_.groups.push_back(
          {its.group.name.empty() ? "group without a name" : "group " + its.group.name, place,
           fmt::format("{} collectives; waited {}; last most often: {}, {} of {}", its.collectives,
                       time_text(to_seconds(its.waited)), places_.rank_text(ranks_[its.last].number), its.last_count,
                       its.collectives)});
    }
    if (shown.size() < meetings_.groups.size())
      chart_.left_out.push_back(fmt::format("Of {} groups those {} stand here whose ranks waited longest.",
                                            meetings_.groups.size(), shown.size()));
  }

  // Whose link it is: the ranks that reach it, by index into Machine::links.
  std::map<std::size_t, std::vector<std::size_t>> owners() const {
    std::map<std::size_t, std::vector<std::size_t>> owners;
    for (std::size_t rank = 0; rank < run_.machine.views.size() && rank < ranks_.size(); ++rank)
      for (const std::uint16_t link : run_.machine.views[rank].link) owners[link].push_back(rank);
    return owners;
  }

  std::string link_name(std::size_t link, const std::vector<std::size_t>& owners) const {
    std::string name = run_.machine.links[link].name;
    const std::string suffix = fmt::format(" rank {}", ranks_[owners.front()].number);
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    if (places_.node_size() == 0)
      return owners.size() > 1 ? fmt::format("{} of {} ranks", name, owners.size())
                               : fmt::format("{} of rank {}", name, ranks_[owners.front()].number);
    const std::uint32_t first = places_.of(ranks_[owners.front()].number).gpu;
    if (owners.size() == 1) return fmt::format("{} of GPU {}", name, first);
    const std::uint32_t last = places_.of(ranks_[owners.back()].number).gpu;
    return fmt::format("{} of GPUs {} to {}", name, first, last);
  }

  void add_links() {
    const auto owners_of = owners();
    std::vector<std::size_t> used;
    for (const auto& [link, of] : owners_of)
      if (link < run_.result.links.size() && run_.result.links[link].bytes > 0) used.push_back(link);
    const auto shown =
        heaviest(used.size(), kMostLinks, [&](std::size_t i) { return run_.result.links[used[i]].bytes; });
    const double seconds = to_seconds(run_.result.end);
    for (const std::size_t i : shown) {
      const std::size_t link = used[i];
      const std::vector<std::size_t>& of = owners_of.at(link);
      const double could = run_.machine.links[link].bandwidth * seconds;
      const Bytes bytes = run_.result.links[link].bytes;
      const bool one_node = node_of(of.front()) == node_of(of.back());
      RankPlace& place = one_node ? place_of_node(node_of(of.front())) : common_;
      place.links.push_back({one_node ? link_name(link, of) : run_.machine.links[link].name, bytes,
                             could > 0 ? static_cast<double>(bytes) / could : 0, run_.machine.links[link].bandwidth});
    }
    if (shown.size() < used.size())
      chart_.left_out.push_back(
          fmt::format("Of {} links those {} stand here that carried most.", used.size(), shown.size()));
    common_.name = "of several nodes";
  }

  const Run& run_;
  const std::vector<Rank>& ranks_;
  const GpuPlaces places_;
  const std::vector<RankSummary> summaries_;
  const RankMeetings meetings_;
  RanksChart chart_;
  std::map<std::uint32_t, RankPlace> by_node_;
  RankPlace common_;  // what several nodes have in common
};

}  // namespace

Figure ranks_figure(const Run& run) {
  if (rank_count(run.trace) == 1)
    throw UsageError(
        fmt::format("the view ranks shows who waits for whom; the run of {} holds one rank.", run.trace->name));
  return draw_ranks(RanksPicture(run).chart());
}

}  // namespace memwall::gui
