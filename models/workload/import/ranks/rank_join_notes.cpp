#include "models/workload/import/ranks/rank_join_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "models/workload/import/ranks/collective_match.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

std::string list(const std::vector<std::uint32_t>& numbers) {
  constexpr std::size_t kShown = 16;
  std::string text;
  for (std::size_t i = 0; i < numbers.size() && i < kShown; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", numbers[i]);
  if (numbers.size() > kShown) text += fmt::format(" and {} more", numbers.size() - kShown);
  return text;
}

std::string microseconds_text(Duration d) { return fmt::format("{:.1f} us", to_microseconds(d)); }

const CapturedCollective& collective(const RankJoin& join, const RendezvousMember& member) {
  return join.captures[member.rank].collectives[member.collective];
}

Decision present_ranks(const RankJoin& join) {
  Decision d{.subject = "ranks of the job",
             .sentence = "",
             .covered = join.numbers.size(),
             .of = join.job_ranks,
             .kind = NoteKind::missing};
  const std::size_t of = join.job_ranks;
  if (of == 0) {
    d.of = d.covered;
    d.sentence = fmt::format("Ranks {} are present; how many the job had is not known.", list(join.numbers));
    if (d.covered == d.of) d.kind = NoteKind::counted;
    return d;
  }
  std::vector<std::uint32_t> absent;
  for (std::uint32_t rank = 0; rank < of && absent.size() <= 64; ++rank)
    if (!std::binary_search(join.numbers.begin(), join.numbers.end(), rank)) absent.push_back(rank);
  d.sentence = fmt::format("Ranks {} of {} are present.", list(join.numbers), of);
  if (of > join.numbers.size())
    d.sentence = fmt::format(
        "Ranks {} of {} are present; absent: {}{}. Absent ranks arrive at each collective with the "
        "last of those that are present.",
        list(join.numbers), of, list(absent), of - join.numbers.size() > absent.size() ? " and more" : "");
  return d;
}

Decision rank_numbers(const RankJoin& join) {
  Decision d{.subject = "numbers of the ranks",
             .sentence = "",
             .covered = 0,
             .of = join.captures.size(),
             .kind = NoteKind::assumed};
  std::string by_order;
  for (std::size_t i = 0; i < join.captures.size(); ++i) {
    if (join.captures[i].rank >= 0)
      ++d.covered;
    else
      by_order += fmt::format("{}{} is {}", by_order.empty() ? "" : ", ", join.names[i], join.numbers[i]);
  }
  d.sentence = by_order.empty()
                   ? "Each file says which rank it is."
                   : fmt::format("Files that do not say which rank they are were numbered as given: {}.", by_order);
  if (d.covered == d.of) d.kind = NoteKind::counted;
  return d;
}

Decision process_groups(const RankJoin& join) {
  Decision d{.subject = "process groups", .sentence = "", .covered = 0, .of = 0, .kind = NoteKind::assumed};
  std::uint64_t by_execution_trace = 0;
  for (const RankCapture& capture : join.captures) {
    d.covered += capture.named_by_file + capture.named_by_execution_trace;
    by_execution_trace += capture.named_by_execution_trace;
    d.of += capture.collectives.size();
  }
  std::string groups;
  for (std::size_t g = 0; g < join.groups.size() && g < 8; ++g)
    groups += fmt::format("{}\"{}\" of {} ranks, {} of them present", g == 0 ? "" : "; ", join.groups[g].name,
                          join.groups[g].ranks == 0 ? "an unknown number of" : std::to_string(join.groups[g].ranks),
                          join.matches.ranks_of_group[g].size());
  d.sentence = fmt::format(
      "{} process groups ({}{}). Of {} collectives {} have their group from the capture, {} from the "
      "ExecutionTrace; of the others each stream counts as a group, and is the same as that of "
      "another rank whose collectives match best.",
      join.groups.size(), groups, join.groups.size() > 8 ? "; ..." : "", d.of, d.covered - by_execution_trace,
      by_execution_trace);
  return d;
}

Decision matched(const RankJoin& join) {
  Decision d{.subject = "collectives matched", .sentence = "", .covered = 0, .of = 0};
  std::uint64_t numbered = 0, unknown_peer = 0;
  for (const MatchedRank& rank : join.matches.ranks) {
    d.covered += rank.met;
    d.of += rank.collectives;
    numbered += rank.numbered;
    unknown_peer += rank.unknown_peer;
  }
  d.sentence = fmt::format(
      "{} of {} collectives are matched with those of other ranks, in {} rendezvous ({} matches by the library's "
      "numbers, the others by order, kind, data type and message, and by their ends).",
      d.covered, d.of, join.matches.rendezvous.size(), numbered);
  if (d.covered < d.of)
    d.sentence +=
        fmt::format(" {} stand alone and keep their captured duration, which contains waiting", d.of - d.covered);
  if (unknown_peer > 0)
    d.sentence +=
        fmt::format(" ({} of them are batches of sends and receives that do not say with whom)", unknown_peer);
  if (d.covered < d.of) d.sentence += ".";
  if (join.matches.not_together > 0)
    d.sentence +=
        fmt::format(" {} matches were dropped: one rank had ended before another began.", join.matches.not_together);
  return d;
}

// "rank 1 sends 500 elements of fp32 to rank 2"
std::string message_text(const CapturedCollective& c, std::int64_t self) {
  const std::string size =
      c.elements < 0 ? "a message" : fmt::format("{} elements of {}", c.elements, to_string(c.type));
  return c.source == self ? fmt::format("rank {} sends {} to rank {}", self, size, c.destination)
                          : fmt::format("rank {} receives {} from rank {}", self, size, c.source);
}

// Kernels, messages, and messages that have a partner; nothing where no capture has a batch that says with whom.
std::optional<Decision> batches(const RankJoin& join) {
  Decision d{.subject = "batches of sends and receives", .sentence = "", .covered = 0, .of = 0};
  std::uint64_t kernels = 0, unanswered = 0;
  std::string first;
  for (std::size_t r = 0; r < join.captures.size(); ++r) {
    const std::vector<CapturedCollective>& all = join.captures[r].collectives;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].batched) continue;
      ++d.of;
      d.covered += join.matches.rendezvous_of[r][i] != kNoRendezvous;
      kernels += i == 0 || all[i - 1].op != all[i].op;
    }
    const MatchedRank& rank = join.matches.ranks[r];
    if (rank.unanswered > 0 && first.empty())
      first = message_text(all[rank.first_unanswered], join.captures[r].rank) +
              fmt::format(", {} behind its start", human_time(all[rank.first_unanswered].start - Time{}));
    unanswered += rank.unanswered;
  }
  if (d.of == 0) return std::nullopt;
  d.sentence = fmt::format(
      "{} kernels are batches of {} sends and receives; {} of these have their counterpart in another rank's kernel, "
      "and "
      "each pair of kernels waits for itself.",
      kernels, d.of, d.covered);
  if (unanswered > 0) {
    d.sentence += fmt::format(
        " Of {} the peer was recorded at the time and has none like it (the first: {}): the sides disagree in their "
        "number, sizes or types, or records are missing; these keep the captured duration of their kernel.",
        unanswered, first);
    d.kind = NoteKind::missing;
  }
  return d;
}

Decision ends(const RankJoin& join) {
  Decision d{.subject = "ends of rendezvous", .sentence = "", .covered = 0, .of = 0};
  std::vector<Duration> spreads;
  for (const CollectiveRendezvous& rendezvous : join.matches.rendezvous) {
    if (!ends_together(collective(join, rendezvous.members.front()).kind)) continue;
    spreads.push_back(rendezvous.spread);
    d.covered += rendezvous.spread <= kEndsAgree;
  }
  d.of = spreads.size();
  if (spreads.empty()) {
    d.sentence = "No rendezvous is of a kind that ends on all ranks together.";
    return d;
  }
  std::sort(spreads.begin(), spreads.end());
  d.sentence = fmt::format("On one clock the ends of a rendezvous lie within {} of each other (median; at most {}).",
                           microseconds_text(spreads[spreads.size() / 2]), microseconds_text(spreads.back()));
  return d;
}

Decision last_arrivers(const RankJoin& join) {
  Decision d{.subject = "last arrivers", .sentence = "", .covered = 0, .of = join.matches.rendezvous.size()};
  double ratio = 1;
  std::map<std::uint32_t, std::uint64_t> count;
  for (const CollectiveRendezvous& rendezvous : join.matches.rendezvous) {
    if (rendezvous.own > Duration{})
      ratio = std::max(ratio, to_seconds(rendezvous.longest) / to_seconds(rendezvous.own));
    ++count[join.numbers[rendezvous.members[rendezvous.last].rank]];
    d.covered += absent_members(join, rendezvous) == 0;
  }
  std::string by_rank;
  for (const auto& [rank, times] : count) {
    if (count.size() <= 16) by_rank += fmt::format("{}rank {}: {}", by_rank.empty() ? " (" : ", ", rank, times);
  }
  d.sentence = fmt::format(
      "A rendezvous costs what its last arriver captured{}; who waited longest captured up to {:.1f} "
      "times that.",
      by_rank.empty() ? "" : by_rank + ")", ratio);
  return d;
}

Decision absent_ranks(const RankJoin& join) {
  Decision d{.subject = "absent ranks", .sentence = "", .covered = 0, .of = 0, .kind = NoteKind::missing};
  for (const CollectiveRendezvous& rendezvous : join.matches.rendezvous) d.of += absent_members(join, rendezvous) > 0;
  d.covered = d.of == 0 ? 0 : likely_waiting_for_absent_rank(join);
  d.sentence =
      d.of == 0
          ? "All ranks of every rendezvous's group are present, as far as the sizes of groups are known."
          : fmt::format(
                "In {} of {} rendezvous ranks are absent: the last arriver's duration may contain waiting for them. "
                "In {} it is so much longer than another collective of the group and kind shows to be enough "
                "that an absent rank was probably the last.",
                d.of, join.matches.rendezvous.size(), d.covered);
  if (d.of == 0) d.kind = NoteKind::counted;
  return d;
}

// ". Clocks contradict ..." where collectives that are the same by their order end apart.
std::string contradiction_text(const RankJoin& join, std::size_t i) {
  const MatchedRank& rank = join.matches.ranks[i];
  const ClockContradiction& c = rank.contradiction;
  const Duration steady(static_cast<std::int64_t>(std::fabs(rank.fit.clock.drift * static_cast<double>(c.at.count()))));
  if (!c.follow_alike() || std::max(c.jump, -c.jump) <= kEndsAgree || c.range() <= kEndsAgree + steady * 2) return "";
  return fmt::format(
      ". Rank {}'s clock contradicts the others': their difference changes by {} at its {} number {}, {} behind its "
      "start",
      join.numbers[i], human_time(c.jump), to_string(c.kind), c.number, human_time(c.at - Time{}));
}

Decision clocks(const RankJoin& join) {
  Decision d{.subject = "clocks", .sentence = "", .covered = 1, .of = join.captures.size(), .kind = NoteKind::assumed};
  bool contradicts = false;
  for (std::size_t i = 1; i < join.captures.size(); ++i) {
    const ClockFit& fit = join.matches.ranks[i].fit;
    const RankCapture &first = join.captures.front(), &own = join.captures[i];
    const double apart_ns = static_cast<double>(own.start_ns) - static_cast<double>(first.start_ns);
    const Duration own_start = fit.clock.on_reference(Time{});
    std::string offset = "is not comparable by the files' absolute times";
    bool same = false;
    if (std::fabs(apart_ns) < 8.64e14) {
      const Duration off =
          own_start - (nanoseconds(own.start_ns - first.start_ns) + own.start_fraction - first.start_fraction);
      same = off <= kEndsAgree && -off <= kEndsAgree;
      offset = same ? fmt::format("is the same (offset {})", microseconds_text(off))
                    : fmt::format("is {:+.3f} ms off", to_seconds(off) * 1e3);
    }
    if (fit.clock.drift != 0) offset += fmt::format(", drifts by {:+.2f} ppm", fit.clock.drift * 1e6);
    d.covered += same;
    if (join.captures.size() <= 17 || !same)
      d.sentence += fmt::format("{}Rank {}'s clock {} ({} ends, median error {})", d.sentence.empty() ? "" : ". ",
                                join.numbers[i], offset, fit.samples, microseconds_text(fit.median_error));
    if (fit.samples < 3) d.sentence += "; it rests on few collectives";
    const std::string contradiction = contradiction_text(join, i);
    contradicts = contradicts || !contradiction.empty();
    d.sentence += contradiction;
  }
  d.sentence = d.sentence.empty() ? "All ranks but one have the first rank's clock." : d.sentence + ".";
  d.kind = contradicts ? NoteKind::missing : d.covered == d.of ? NoteKind::counted : NoteKind::assumed;
  return d;
}

Decision starts(const RankJoin& join) {
  const Duration latest = *std::max_element(join.starts.begin(), join.starts.end());
  return {.subject = "starts of the programs",
          .sentence = fmt::format("The ranks' first events lie {:.3f} ms apart; later programs begin with so much host "
                                  "time, so that their arrivals are as captured.",
                                  to_seconds(latest) * 1e3),
          .covered = 0,
          .of = 0};
}

}  // namespace

std::uint32_t absent_members(const RankJoin& join, const CollectiveRendezvous& rendezvous) {
  const std::uint32_t of = join.groups[rendezvous.group].ranks;
  if (collective(join, rendezvous.members.front()).kind == CollectiveKind::send_receive) return 0;
  return of > rendezvous.members.size() ? of - static_cast<std::uint32_t>(rendezvous.members.size()) : 0;
}

std::uint64_t likely_waiting_for_absent_rank(const RankJoin& join) {
  // By group and kind: rendezvous with their size, the larger of the ranks' messages.
  std::map<std::pair<std::uint32_t, CollectiveKind>, std::vector<std::pair<double, const CollectiveRendezvous*>>> alike;
  for (const CollectiveRendezvous& rendezvous : join.matches.rendezvous) {
    if (absent_members(join, rendezvous) == 0) continue;
    double bytes = 0;
    for (const RendezvousMember& member : rendezvous.members) {
      const CapturedCollective& c = collective(join, member);
      bytes =
          std::max(bytes, static_cast<double>(c.elements) * static_cast<double>(std::max<Bytes>(bytes_of(c.type), 1)));
    }
    if (bytes > 0)
      alike[{rendezvous.group, collective(join, rendezvous.members.front()).kind}].push_back({bytes, &rendezvous});
  }
  std::uint64_t awaited = 0;
  for (auto& [key, candidates] : alike) {
    // Only the cheapest rendezvous of each size matters.
    std::map<double, Duration> cheapest;
    for (const auto& [bytes, rendezvous] : candidates) {
      const auto [at, is_new] = cheapest.try_emplace(bytes, rendezvous->own);
      if (!is_new) at->second = std::min(at->second, rendezvous->own);
    }
    for (const auto& [bytes, rendezvous] : candidates) {
      double enough = to_seconds(rendezvous->own);
      std::size_t looked = 0;
      for (const auto& [size, own] : cheapest) {
        enough = std::min(enough, std::ceil(bytes / size) * to_seconds(own));
        if (++looked >= 4096) break;
      }
      awaited += to_seconds(rendezvous->own) > 1.5 * enough && to_seconds(rendezvous->own) > enough + 20e-6;
    }
  }
  return awaited;
}

std::vector<Decision> join_decisions(const RankJoin& join) {
  std::vector<Decision> all{present_ranks(join), rank_numbers(join), process_groups(join), matched(join)};
  if (std::optional<Decision> of_batches = batches(join)) all.push_back(std::move(*of_batches));
  for (auto* decision : {ends, last_arrivers, absent_ranks, clocks, starts}) all.push_back(decision(join));
  return all;
}

}  // namespace memwall
