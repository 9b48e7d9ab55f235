#include "cli/print/missing_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "sim/human_text.h"

namespace memwall {

std::string missing_meaning(const RunSummary& s) {
  std::set<std::string> meanings;
  for (const TierSummary& tier : s.tiers) {
    if (tier.missing_cause == MissingCause::in_use) meanings.insert("peak less usable");
    if (tier.missing_cause == MissingCause::reserved) meanings.insert("reserved less usable");
    if (tier.missing_cause == MissingCause::in_one_piece)
      meanings.insert("a request that found only smaller pieces free (fragmentation)");
  }
  return meanings.empty() ? "" : fmt::format("; missing: {}", fmt::join(meanings, ", or "));
}

std::string missing_sentence(const RunSummary& s) {
  std::string text;
  for (const TierSummary& tier : s.tiers) {
    if (tier.missing <= 0) continue;
    const std::string usable = human_bytes(tier.usable);
    text += fmt::format("{}{} bytes ({}) are missing in tier {}", text.empty() ? "" : "; ", tier.missing,
                        human_bytes(tier.missing), tier.name);
    if (tier.missing_cause != MissingCause::in_one_piece)
      text +=
          fmt::format(", which has {} usable: {} are {} at the peak", usable, human_bytes(tier.missing + tier.usable),
                      tier.missing_cause == MissingCause::in_use ? "in use" : "reserved");
    else
      text += fmt::format(" in one piece: a request found {} of its {} free, but not together (fragmentation)",
                          tier.free_at_refusal ? human_bytes(*tier.free_at_refusal) : "enough", usable);
  }
  return text;
}

}  // namespace memwall
