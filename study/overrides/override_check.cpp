#include "study/overrides/override_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "models/hw/bus_setting.h"
#include "models/hw/transfer.h"
#include "sim/error.h"
#include "sim/machine/route_bound.h"
#include "study/overrides/override_figures.h"

namespace memwall {
namespace {

constexpr double kSlack = 1e-9;  // of rates: rounding

// Up to which an allocator that may have been short of room, and then keeps within what there is, shows that it was
// not.
Bytes roomy(Bytes holds) { return holds / 10 * 9; }

// Why a part of the difference is idle. Nothing: it may matter; "": there is no difference.
using Idle = std::optional<std::string>;

std::string path_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }
std::string value_of(const std::string& setting) { return setting.substr(setting.find('=') + 1); }

std::string bandwidth_path(const std::string& link) {
  if (link == "hbm") return "gpu.hbm.bandwidth";
  return link == "host_dram" ? "host.dram.bandwidth" : "link." + link + ".bandwidth";
}

// What one override changes: the machine with it and without.
class OverrideEffect {
 public:
  OverrideEffect(std::string setting, const Run& run, const OverrideFigures& figures, const Machine& without,
                 MachineTimes times)
      : setting_(std::move(setting)),
        run_(run),
        figures_(figures),
        with_(run.machine.one),
        without_(without),
        times_(times) {
    for (std::uint16_t l = 0; l < std::min(with_.links.size(), without_.links.size()); ++l)
      if (with_.links[l] != without_.links[l]) links_.push_back(l);
  }

  // "" where it may matter in full.
  std::string warning() const {
    if (!comparable()) return "";
    std::string reasons;
    for (const Idle& idle : {links(), routes(), fabrics(), tiers(), rest()}) {
      if (!idle) return in_part();
      if (!idle->empty() && (reasons.empty() || !unused_links())) reasons += (reasons.empty() ? "" : "; ") + *idle;
    }
    if (!priced_alike(run_.trace, with_, without_, times_.measured)) return "";
    if (reasons.empty()) reasons = "no op of this run is priced by it";
    return fmt::format("{} changes {}: {}{}.", setting_, only_memory() || only_peaks() ? "no time" : "nothing", reasons,
                       remedy());
  }

 private:
  bool comparable() const {
    return with_.links.size() == without_.links.size() && with_.routes.size() == without_.routes.size() &&
           with_.fabrics.size() == without_.fabrics.size() && with_.tiers.size() == without_.tiers.size();
  }

  // --- links
  bool unused_links() const {
    return !links_.empty() &&
           std::all_of(links_.begin(), links_.end(), [&](std::uint16_t l) { return figures_.link_bytes(l) == 0; });
  }

  bool never_filled(std::uint16_t l) const {
    const Link &now = with_.links[l], &before = without_.links[l];
    Link same = before;
    same.bandwidth = now.bandwidth;
    return now == same && figures_.peak_rate(l) <= std::min(now.bandwidth, before.bandwidth) * (1 + kSlack);
  }

  Idle links() const {
    if (links_.empty()) return "";
    if (unused_links()) return fmt::format("nothing in this run goes over {}{}", names(links_), also_bounded());
    for (const std::uint16_t l : links_)
      if (figures_.link_bytes(l) > 0 && !never_filled(l)) return {};
    const std::string bounds = bounds_text(true);
    if (!bounds.empty()) return bounds;
    const std::uint16_t l = links_.front();
    return fmt::format("{} never carries more than {} here", with_.links[l].name,
                       bandwidth_text(figures_.peak_rate(l)));
  }

  std::string also_bounded() const {
    const std::string bounds = bounds_text(false);
    return bounds.empty() ? "" : "; " + bounds;
  }

  // Of the routes over a link that was raised, what bounds them though; of those that carried something, or of all.
  // "" where one of them becomes faster.
  std::string bounds_text(bool used) const {
    std::map<std::string, std::vector<std::string>> routes;  // by what bounds them
    std::vector<std::uint16_t> raised;
    for (const std::uint16_t l : links_) {
      if (with_.links[l].bandwidth <= without_.links[l].bandwidth || is_derived(l)) continue;
      bool crossed = false;
      for (std::size_t r = 0; r < with_.routes.size(); ++r) {
        const Route& route = with_.routes[r];
        if (!crosses(route, l) || route.from == route.to || (used && figures_.route_bytes(r) == 0)) continue;
        if (route.pageable && !used) continue;
        const RouteBound bound = bound_of(with_, route);
        if (is_in(bound.links, l) || route.bandwidth != without_.routes[r].bandwidth) return "";
        routes[fmt::format("{} at {}", text_of(bound, with_), bandwidth_text(bound.bandwidth))].push_back(route.name);
        crossed = true;
      }
      if (crossed) raised.push_back(l);
    }
    if (routes.size() == 1)
      return fmt::format("routes over {} are bounded by {}", names(raised), routes.begin()->first);
    std::string text;
    for (const auto& [bound, over] : routes)
      text += fmt::format("{}{} {} bounded by {}", text.empty() ? "" : ", ", fmt::join(over, ", "),
                          over.size() == 1 ? "is" : "are", bound);
    return text;
  }

  // What to set as well.
  std::string remedy() const {
    std::set<std::string> paths;
    std::string bus;
    const bool used = !unused_links();  // then what nothing takes is nobody's concern
    for (const std::uint16_t l : links_) {
      if (with_.links[l].bandwidth <= without_.links[l].bandwidth || is_derived(l)) continue;
      for (std::size_t r = 0; r < with_.routes.size(); ++r) {
        const Route& route = with_.routes[r];
        if (!crosses(route, l) || route.from == route.to || route.pageable) continue;
        if (used && figures_.route_bytes(r) == 0) continue;
        const RouteBound bound = bound_of(with_, route);
        if (is_in(bound.links, l)) return "";
        for (const std::uint16_t other : bound.links)
          if (!is_derived(other)) paths.insert(bandwidth_path(with_.links[other].name));
        if (bound.stated) paths.insert("route." + route.name + ".bandwidth");
        bus = bus_for(l, bound);
      }
    }
    if (paths.empty()) return "";
    return fmt::format(" (set {} as well{})", fmt::join(paths, " and "), bus.empty() ? "" : ", or --set " + bus);
  }

  // A bus that raises the link to about what was asked, and with it all that bounds the route.
  std::string bus_for(std::uint16_t link, const RouteBound& bound) const {
    constexpr double kSustained = 0.77;  // of a bus's line rate, which is what people may have asked for
    for (const std::uint16_t other : bound.links)
      if (faster_buses(with_.links[other].name, with_.links[other].bandwidth).empty()) return "";
    const Link& asked = with_.links[link];
    const std::vector<std::string> buses = faster_buses(asked.name, kSustained * asked.bandwidth);
    return bound.stated || buses.empty() ? "" : buses.front();
  }

  // --- what goes over them
  // The weight of a route counts only where links are full, and then its copies are slowed.
  static bool same_but_weight(const Route& a, Route b) {
    b.weight = a.weight;
    return a == b;
  }

  Idle routes() const {
    std::vector<std::string> unused;
    for (std::size_t r = 0; r < with_.routes.size(); ++r) {
      const Route &now = with_.routes[r], &before = without_.routes[r];
      if (now == before) continue;
      if (figures_.route_bytes(r) > 0 && !(same_but_weight(now, before) && !figures_.is_slowed(r))) return {};
      if (figures_.route_bytes(r) == 0 && !same_but_weight(now, before)) unused.push_back(now.name);
    }
    return unused.empty() ? "" : fmt::format("nothing in this run goes over route {}", fmt::join(unused, ", "));
  }

  Idle fabrics() const {
    std::vector<std::string> unused;
    for (std::size_t f = 0; f < with_.fabrics.size(); ++f) {
      const Fabric &now = with_.fabrics[f], &before = without_.fabrics[f];
      if (now == before) continue;
      for (const std::uint32_t ranks : figures_.collective_ranks())
        if (with_.fabric(ranks) == &now || without_.fabric(ranks) == &before) return {};
      unused.push_back(now.name);
    }
    if (unused.empty()) return "";
    return figures_.collective_ranks().empty()
               ? "no collective runs"
               : fmt::format("no collective of this run goes over fabric {}", fmt::join(unused, ", "));
  }

  // --- memory
  // A change of what a tier holds, and of nothing else.
  static bool same_but_size(const Tier& a, Tier b) {
    b.capacity = a.capacity;
    b.unavailable = a.unavailable;
    return a == b;
  }

  bool only_memory() const {
    return links_.empty() && with_.tiers != without_.tiers && with_.gpu == without_.gpu && with_.host == without_.host;
  }

  // A capture without allocations leaves open what its GPU holds.
  bool is_unrecorded(const Tier& tier, std::size_t index) const {
    return tier.name == "hbm" && !run_.trace->knowledge.allocations && figures_.peak_reserved(index) == 0;
  }

  // MFU is held against them all the same.
  bool only_peaks() const {
    Gpu gpu = without_.gpu;
    gpu.peaks = with_.gpu.peaks;
    return with_.gpu.peaks != without_.gpu.peaks && gpu == with_.gpu && with_.tiers == without_.tiers;
  }

  Idle tiers() const {
    std::string reasons;
    for (std::size_t t = 0; t < with_.tiers.size(); ++t) {
      const Tier &now = with_.tiers[t], &before = without_.tiers[t];
      if (now == before) continue;
      std::string reason;
      if (is_unrecorded(now, t) && same_but_size(now, before))
        reason = fmt::format("what {} holds is not recorded here, and nothing is taken to be there", now.name);
      else if (!figures_.is_used(t))
        reason = fmt::format("nothing in this run is kept in {}", now.name);
      else if (same_but_size(now, before) && figures_.fits_in(t, roomy(std::min(now.holds(), before.holds()))))
        reason = fmt::format("{} holds at most {} here, which fits into {} too", now.name,
                             memory_text(figures_.peak_reserved(t)), memory_text(before.holds()));
      else
        return {};
      reasons += (reasons.empty() ? "" : "; ") + reason;
    }
    return reasons;
  }

  // --- prices
  // All that was not looked at before, and that prices do not tell.
  Idle rest() const {
    Machine a = with_, b = without_;
    for (Machine* m : {&a, &b}) {
      m->links.clear();
      m->routes.clear();
      m->fabrics.clear();
      m->tiers.clear();
    }
    const bool prices = !(a.gpu == b.gpu) || a.host.optimizer_bandwidth != b.host.optimizer_bandwidth;
    b.host.optimizer_bandwidth = a.host.optimizer_bandwidth;
    b.gpu.peaks = a.gpu.peaks;
    b.gpu.efficiencies = a.gpu.efficiencies;
    b.gpu.matrix = a.gpu.matrix;
    b.gpu.attention = a.gpu.attention;
    b.gpu.mig_profiles = a.gpu.mig_profiles;
    HostCosts host = b.host;
    host.watts = a.host.watts;
    const bool calls = !(host == a.host) && a.host.watts == b.host.watts;
    // What rewriters and pagers add costs what the file says, and they may choose by price.
    const bool plain = run_.policies.empty() && run_.pager.empty();
    if ((prices && !plain) || (calls && (!plain || times_.host || run_.changes.transfer_host))) return {};
    b.host = calls ? a.host : b.host;
    if (!(a == b)) return {};
    if (calls) return "the host's times are those of the capture (--transfer-host takes them along)";
    return prices ? "no op of this run is priced by it" : "";
  }

  // --- what it does though it may matter
  std::string in_part() const {
    for (const std::uint16_t l : links_) {
      if (with_.links[l].bandwidth <= without_.links[l].bandwidth || is_derived(l)) continue;
      for (std::size_t r = 0; r < with_.routes.size(); ++r) {
        const Route& route = with_.routes[r];
        if (!crosses(route, l) || route.pageable || route.from == route.to || figures_.route_bytes(r) == 0) continue;
        const RouteBound bound = bound_of(with_, route);
        if (is_in(bound.links, l)) continue;
        const bool faster = route.bandwidth != without_.routes[r].bandwidth;
        return fmt::format("{} {}: {} is bounded by {} at {}{}.", setting_,
                           faster ? "takes effect in part" : "makes no single transfer faster, only what runs at once",
                           route.name, text_of(bound, with_), bandwidth_text(bound.bandwidth), remedy());
      }
    }
    return "";
  }

  static bool is_in(const std::vector<std::uint16_t>& links, std::uint16_t l) {
    return std::find(links.begin(), links.end(), l) != links.end();
  }
  static bool crosses(const Route& route, std::uint16_t l) { return is_in(route.links, l); }
  // Made of a duplex block: it has no number of its own to set.
  bool is_derived(std::uint16_t l) const { return figures_.is_derived(with_.links[l].name); }

  std::string names(const std::vector<std::uint16_t>& links) const {
    std::vector<std::string> own;
    for (const std::uint16_t l : links)
      if (!is_derived(l) || links.size() == 1) own.push_back(with_.links[l].name);
    return fmt::format("{}", fmt::join(own, ", "));
  }

  const std::string setting_;
  const Run& run_;
  const OverrideFigures& figures_;
  const Machine &with_, &without_;
  const MachineTimes times_;
  std::vector<std::uint16_t> links_;  // that differ
};

// "gen5" where a later --set of the same number makes it that; "" = none does.
std::string set_later(const std::vector<std::string>& settings, std::size_t i) {
  for (std::size_t later = settings.size(); --later > i;)
    if (path_of(settings[later]) == path_of(settings[i])) return value_of(settings[later]);
  return "";
}

std::string overridden_later(const std::string& setting, const std::string& value) {
  return fmt::format("{} changes nothing: a later --set makes it {}.", setting, value);
}

// Of an override that leaves the machine as it is.
std::string no_change(const std::string& setting, const std::vector<MachineNumber>& with,
                      const std::vector<MachineNumber>& without) {
  const auto at = [&](const std::vector<MachineNumber>& numbers) {
    const auto found = std::find_if(numbers.begin(), numbers.end(),
                                    [&](const MachineNumber& n) { return n.path == path_of(setting); });
    return found == numbers.end() ? "" : found->value;
  };
  const std::string now = at(with), before = at(without);
  if (now.empty()) return fmt::format("{} changes nothing: its links have those rates without it.", setting);
  if (now != value_of(setting)) return overridden_later(setting, now);
  const bool same = std::any_of(without.begin(), without.end(), [&](const MachineNumber& n) {
    return n.path == path_of(setting) && same_quantity(n.value, value_of(setting));
  });
  if (same) return fmt::format("{} changes nothing: it is {} without it.", setting, before);
  return fmt::format("{} changes nothing: what a run costs is not computed from it.", setting);
}

}  // namespace

std::vector<std::string> override_warnings(const Run& run, MachineTimes times, const OverriddenMachine& source) {
  const std::vector<std::string>& settings = run.changes.overrides;
  std::vector<std::string> warnings;
  if (settings.empty()) return warnings;
  const OverrideFigures figures(run, source.numbers(settings));
  for (std::size_t i = 0; i < settings.size(); ++i) {
    std::vector<std::string> others = settings;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (const std::string value = set_later(settings, i); !value.empty()) {
      warnings.push_back(overridden_later(settings[i], value));
      continue;
    }
    std::shared_ptr<const Machine> without;
    try {
      without = source.machine(others);
    } catch (const UsageError&) {
      continue;  // it makes no sense without this one, which therefore does something
    }
    std::string warning = *without == run.machine.one
                              ? no_change(settings[i], source.numbers(settings), source.numbers(others))
                              : OverrideEffect(settings[i], run, figures, *without, times).warning();
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace memwall
