#include "cli/print/host_use_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/print/table_cells.h"
#include "sim/words.h"

namespace memwall {
namespace {

constexpr std::int64_t kLeastPart = 200;  // of a step: what is less is not told

std::string locked_text(const PageLocking& locked) {
  return fmt::format("{} in {}", human_bytes(locked.bytes), counted_text(locked.calls, "call"));
}

void add_first_step(const RunSummary& s, std::vector<HostFigure>& figures) {
  if (s.first_step_time - s.step_time <= s.step_time / kLeastPart) return;
  PageLocking before, first;
  for (const HostUse& use : s.hosts)
    for (const auto& [sum, part] : {std::pair(&before, &use.before_step), std::pair(&first, &use.in_first_step)}) {
      sum->calls += part->calls;
      sum->bytes += part->bytes;
    }
  std::string includes = fmt::format(
      "the job's first one, whose pools and caches are empty: it page-locks {}, which later steps find in PyTorch's "
      "pool",
      locked_text(first));
  if (before.calls > 0) includes += fmt::format("; {} are page-locked before it", locked_text(before));
  figures.push_back({"first step", time_cell(s.first_step_time), std::move(includes)});
}

// Which of the things that ranks share make the step longer by themselves, the worst first.
std::string contended_text(const RunSummary& s) {
  const ContendedSteps& c = s.contended_steps;
  std::vector<std::pair<Duration, const char*>> shared{{c.links, "the links to the host"},
                                                       {c.memory_channels, "the memory channels"},
                                                       {c.cores, "the cores"},
                                                       {c.storage, "the drives"}};
  std::erase_if(shared, [&](const auto& one) { return one.first - s.alone_step_time <= s.step_time / kLeastPart; });
  std::stable_sort(shared.begin(), shared.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [step, what] : shared)
    text += fmt::format("{}{} with {} alone shared", text.empty() ? "; it would take " : ", ", human_time(step), what);
  return text;
}

void add_alone(const RunSummary& s, std::vector<HostFigure>& figures) {
  const Duration contention = s.step_time - s.alone_step_time;
  if (s.alone_step_time == Duration{} || contention <= s.step_time / kLeastPart) return;
  figures.push_back(
      {"alone", time_cell(s.alone_step_time),
       fmt::format("the step time if no other rank used the links, memory channels, drives and cores of its host: {}, "
                   "{} of the step, are contention{}",
                   human_time(contention), percent_text(to_seconds(contention) / to_seconds(s.step_time)),
                   contended_text(s))});
}

std::string core_count(double cores) {
  return cores >= 100 ? grouped_text(static_cast<std::uint64_t>(std::llround(cores))) : fmt::format("{:.3g}", cores);
}

std::string causes_of(const CoreUse& use) {
  std::vector<std::pair<double, const char*>> causes{{use.mean_optimizer, "the CPU optimizer"},
                                                     {use.mean_memory_work, "other work in the host's memory"},
                                                     {use.mean_threads, "host threads (launches, framework)"}};
  std::erase_if(causes, [](const auto& cause) { return cause.first < 0.005; });
  std::stable_sort(causes.begin(), causes.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [cores, what] : causes)
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", core_count(cores), what);
  return text;
}

void add_cores(const RunSummary& s, std::vector<HostFigure>& figures) {
  const CoreUse* busiest = nullptr;
  for (const HostUse& host : s.hosts)
    for (const CoreUse& use : host.cores)
      if (!busiest || use.most / use.cores > busiest->most / busiest->cores) busiest = &use;
  if (!busiest || (busiest->ranks < 2 && busiest->beyond == Duration{})) return;
  std::string includes =
      fmt::format("wanted at once at most, by the {} that {} them; on average {}", counted_text(busiest->ranks, "rank"),
                  by_number(busiest->ranks, "has", "share"), core_count(busiest->mean));
  if (const std::string causes = causes_of(*busiest); !causes.empty()) includes += ": " + causes;
  if (busiest->beyond > Duration{} && s.total > Duration{})
    includes += fmt::format("; more than there are in {} of the run",
                            percent_text(to_seconds(busiest->beyond) / to_seconds(s.total)));
  figures.push_back({"cores",
                     number_cell(fmt::format("{} of {}", core_count(busiest->most), core_count(busiest->cores)),
                                 plain_number(busiest->most)),
                     std::move(includes)});
}

std::string ranks_text(const HostUse& use) {
  if (use.ranks.size() < 2) return use.tier;
  return fmt::format("{}, {} ranks{}", use.tier, use.ranks.size(),
                     use.hosts > 1 ? fmt::format(", {} such", use.hosts) : "");
}

std::string cause_text(const HostMemoryCause& cause) {
  const char* what = "unknown";
  switch (cause.kind) {
    case StorageKind::parameter:
      what = "parameters";
      break;
    case StorageKind::gradient:
      what = "gradients";
      break;
    case StorageKind::optimizer_state:
      what = "optimizer states";
      break;
    case StorageKind::activation:
      what = "activations";
      break;
    case StorageKind::input:
      what = "inputs";
      break;
    case StorageKind::workspace:
      what = "staging and other buffers";
      break;
    case StorageKind::communication_buffer:
      what = "communication buffers";
      break;
    case StorageKind::unknown:
      break;
  }
  return fmt::format("{}, {}", what, cause.pinned ? "page-locked" : "pageable");
}

}  // namespace

std::vector<HostFigure> host_figures(const RunSummary& s) {
  std::vector<HostFigure> figures;
  add_first_step(s, figures);
  add_alone(s, figures);
  add_cores(s, figures);
  return figures;
}

Table host_memory_table(const RunSummary& s) {
  Table t{.name = "host_memory",
          .title =
              "Memory of hosts by cause, of all ranks together, when most is in use (page cache, libraries and what "
              "the program keeps besides are not simulated)",
          .columns = {"host", "cause", "bytes", "share"},
          .headings = {"host", "cause", "bytes", "of usable"},
          .rows = {},
          .wrap = true};
  // Of one rank the tiers' table says it already, but for what is page-locked.
  t.detail = std::all_of(s.hosts.begin(), s.hosts.end(), [](const HostUse& use) { return use.ranks.size() < 2; });
  for (const HostUse& use : s.hosts) {
    const auto row = [&](const std::string& cause, Bytes bytes) {
      if (bytes <= 0) return;
      const double usable = static_cast<double>(use.usable);
      t.rows.push_back(
          {cell(ranks_text(use)), cell(cause), bytes_cell(bytes), share_cell(static_cast<double>(bytes), usable)});
    };
    for (const HostMemoryCause& cause : use.causes) row(cause_text(cause), cause.bytes);
    row("rounding of page-locked memory", use.rounding);
    row("kept by the pool of page-locked memory", use.cached);
    row("all", use.peak_reserved);
  }
  return t;
}

}  // namespace memwall
