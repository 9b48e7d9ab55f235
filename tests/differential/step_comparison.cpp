#include "tests/differential/step_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "tests/differential/kernel_alignment.h"

namespace memwall {
namespace {

StepPart part_of(const StepMemory& step, std::size_t kernel) {
  return kernel < step.backward    ? StepPart::forward
         : kernel < step.optimizer ? StepPart::backward
                                   : StepPart::optimizer;
}

// What names a storage in both steps: what makes it, and the how manyth of those alike it is.
using LifeName = std::tuple<StorageSpan::Maker, std::size_t, Bytes, int, std::size_t>;

// Of storages of one size that one kernel makes, the one that ends first is the first.
std::map<LifeName, StorageSpan> named(std::vector<StorageSpan> lives) {
  std::stable_sort(lives.begin(), lives.end(), [](const StorageSpan& a, const StorageSpan& b) {
    return std::tie(a.to, a.used_until) < std::tie(b.to, b.used_until);
  });
  std::map<LifeName, StorageSpan> out;
  std::map<LifeName, std::size_t> alike;
  for (const StorageSpan& life : lives) {
    const bool before = life.maker == StorageSpan::Maker::before_the_step;
    const std::size_t number = life.maker == StorageSpan::Maker::nobody ? life.from : life.maker_number;
    LifeName name{life.maker, number, life.bytes, before ? static_cast<int>(life.kind) : 0, 0};
    std::get<4>(name) = alike[name]++;
    out[name] = life;
  }
  return out;
}

// With numbers of kernels that both steps have.
std::vector<StorageSpan> in_common(std::vector<StorageSpan> lives, const std::vector<std::size_t>& before) {
  for (StorageSpan& life : lives) {
    life.from = before[life.from];
    life.to = before[life.to];
    life.used_until = before[std::min(life.used_until, before.size() - 1)];
    life.maker_number = before[life.maker_number];
  }
  return lives;
}

// To less than a block of PyTorch's allocator: between two kernels it is the order of an alloc and a free that differs.
bool near(Bytes a, Bytes b) { return std::abs(a - b) < 512; }

class Comparison {
 public:
  Comparison(const StepMemory& simulated, const StepMemory& executed)
      : simulated_(simulated), executed_(executed), kernels_(align_kernels(simulated.kernels, executed.kernels)) {
    compare_kernels();
    compare_lives();
    compare_copies(DifferenceKind::copies_out, simulated_.out, executed_.out);
    compare_copies(DifferenceKind::copies_back, simulated_.back, executed_.back);
    compare_peaks();
  }

  std::vector<Difference> result() && { return std::move(all_); }

 private:
  void compare_kernels() {
    std::vector<bool> is_paired(executed_.kernels.size());
    std::size_t next = 0;
    for (const auto& [s, e] : kernels_.pairs) {
      for (; next < s; ++next) add_kernel(DifferenceKind::kernel_left_out, simulated_, next);
      next = s + 1;
      is_paired[e] = true;
      const StepKernel &said = simulated_.kernels[s], &ran = executed_.kernels[e];
      const bool is_again = said.phase == Phase::recompute;
      if (is_again ? said.repeats == ran.repeats : said.module == ran.module) continue;
      add_kernel(DifferenceKind::kernel_of_other, executed_, e);
      all_.back().what += is_again ? fmt::format(" repeats '{}', simulated '{}'", ran.repeats, said.repeats)
                                   : fmt::format(" of '{}', simulated '{}'", ran.module, said.module);
    }
    for (; next < simulated_.kernels.size(); ++next) add_kernel(DifferenceKind::kernel_left_out, simulated_, next);
    for (std::size_t e = 0; e < executed_.kernels.size(); ++e)
      if (!is_paired[e]) add_kernel(DifferenceKind::kernel_added, executed_, e);
  }

  void add_kernel(DifferenceKind kind, const StepMemory& step, std::size_t number) {
    Difference d;
    d.kind = kind;
    d.part = part_of(step, number);
    d.kernel = step.kernels[number];
    d.what = text_of(d.kernel);
    d.at = (&step == &simulated_ ? kernels_.before_first : kernels_.before_second)[number];
    all_.push_back(d);
  }

  void compare_lives() {
    const auto said = named(in_common(simulated_.lives, kernels_.before_first));
    auto ran = named(in_common(executed_.lives, kernels_.before_second));
    for (const auto& [name, life] : said) {
      const auto found = ran.find(name);
      if (found == ran.end()) {
        if (life.from < life.to) add_life(DifferenceKind::storage_left_out, life, life, life.from);
        continue;
      }
      compare_life(life, found->second);
      ran.erase(found);
    }
    for (const auto& [name, life] : ran)
      if (life.from < life.to) add_life(DifferenceKind::storage_added, life, life, life.from);
  }

  void compare_life(const StorageSpan& said, const StorageSpan& ran) {
    if (said.kind != ran.kind) add_life(DifferenceKind::storage_of_other_kind, said, ran, ran.from);
    if (ran.to != said.to)
      add_life(ran.to > said.to ? DifferenceKind::storage_lives_longer : DifferenceKind::storage_ends_earlier, said,
               ran, std::min(said.to, ran.to));
    if (ran.from != said.from)
      add_life(ran.from > said.from ? DifferenceKind::storage_begins_later : DifferenceKind::storage_begins_earlier,
               said, ran, std::min(said.from, ran.from));
  }

  void add_life(DifferenceKind kind, const StorageSpan& said, const StorageSpan& ran, std::size_t at) {
    Difference d;
    d.kind = kind;
    d.simulated = said;
    d.executed = ran;
    d.at = at;
    d.part = part_at(at);
    d.backward = kernels_.before_first[simulated_.backward];
    d.ends_in_forward = std::max(said.to, ran.to) <= d.backward;
    d.ends_with_rerun = ends_rerun(said.to) || ends_rerun(ran.to);
    d.what = "what lived before";
    if (said.maker == StorageSpan::Maker::copy) d.what = "a copy back";
    if (said.maker == StorageSpan::Maker::nobody) d.what = "nobody";
    if (said.maker == StorageSpan::Maker::kernel && said.maker_number < kernels_.pairs.size()) {
      d.kernel = simulated_.kernels[kernels_.pairs[said.maker_number].first];
      d.what = text_of(d.kernel) + " of '" + d.kernel.module + "'";
    }
    all_.push_back(d);
  }

  // Of a number in common.
  StepPart part_at(std::size_t number) const {
    return number < kernels_.pairs.size() ? part_of(simulated_, kernels_.pairs[number].first) : StepPart::optimizer;
  }

  // Right behind a recomputed kernel: a re-run ends there, or another begins.
  bool ends_rerun(std::size_t number) const {
    const auto phase_of = [&](std::size_t kernel) {
      return kernel < kernels_.pairs.size() ? simulated_.kernels[kernels_.pairs[kernel].first].phase : Phase::unknown;
    };
    return number > 0 && phase_of(number - 1) == Phase::recompute;
  }

  void compare_copies(DifferenceKind kind, const std::vector<StepCopy>& said, const std::vector<StepCopy>& ran) {
    const bool same = std::equal(said.begin(), said.end(), ran.begin(), ran.end(),
                                 [](const StepCopy& a, const StepCopy& b) { return a.bytes == b.bytes; });
    if (!same) add_order(kind, said, ran);
    for (std::size_t i = 0; same && i < said.size(); ++i) {
      const std::size_t s = kernels_.before_first[said[i].before], e = kernels_.before_second[ran[i].before];
      if (s == e) continue;
      Difference d;
      d.kind = DifferenceKind::copy_issued_elsewhere;
      d.part = part_at(e);
      d.at = e;
      d.what = fmt::format("{} {}: before kernel {}, simulated {}",
                           kind == DifferenceKind::copies_out ? "copy out" : "copy back", i, e, s);
      d.simulated_bytes = d.executed_bytes = said[i].bytes;
      all_.push_back(d);
    }
  }

  void add_order(DifferenceKind kind, const std::vector<StepCopy>& said, const std::vector<StepCopy>& ran) {
    Difference d;
    d.kind = kind;
    const auto sizes = [](const std::vector<StepCopy>& copies) {
      std::vector<Bytes> all;
      for (const StepCopy& copy : copies) all.push_back(copy.bytes);
      return all;
    };
    std::vector<Bytes> s = sizes(said), e = sizes(ran);
    const auto first = std::mismatch(s.begin(), s.end(), e.begin(), e.end());
    d.at = static_cast<std::size_t>(first.first - s.begin());
    d.simulated_bytes = std::accumulate(s.begin(), s.end(), Bytes{0});
    d.executed_bytes = std::accumulate(e.begin(), e.end(), Bytes{0});
    // Does the order differ within copies that are issued before one kernel alone?
    const auto sorted = [](const std::vector<StepCopy>& copies, const std::vector<std::size_t>& before) {
      std::vector<std::pair<std::size_t, Bytes>> all;
      for (const StepCopy& copy : copies) all.emplace_back(before[copy.before], copy.bytes);
      std::sort(all.begin(), all.end());
      return all;
    };
    d.same_total = sorted(said, kernels_.before_first) == sorted(ran, kernels_.before_second);
    d.what = fmt::format("{} copies, simulated {}; the first that differs is number {}", e.size(), s.size(), d.at);
    all_.push_back(d);
  }

  void compare_peaks() {
    const bool lives_differ = std::any_of(all_.begin(), all_.end(), [](const Difference& d) {
      return d.kind >= DifferenceKind::storage_lives_longer && d.kind <= DifferenceKind::storage_added;
    });
    if (lives_differ) return;  // each of which has to be explained
    for (std::size_t part = 0; part < kStepParts; ++part) {
      if (near(simulated_.peak[part], executed_.peak[part]) &&
          std::equal(simulated_.peak_by_kind[part].begin(), simulated_.peak_by_kind[part].end(),
                     executed_.peak_by_kind[part].begin(), near))
        continue;
      Difference d;
      d.kind = DifferenceKind::peak;
      d.part = static_cast<StepPart>(part);
      d.simulated_bytes = simulated_.peak[part];
      d.executed_bytes = executed_.peak[part];
      d.what = "the whole, or of a kind";
      all_.push_back(d);
    }
  }

  const StepMemory &simulated_, &executed_;
  const KernelAlignment kernels_;
  std::vector<Difference> all_;
};

}  // namespace

std::string_view to_string(DifferenceKind kind) {
  static constexpr std::string_view kNames[] = {"kernel left out",
                                                "kernel added",
                                                "kernel of another",
                                                "storage lives longer",
                                                "storage ends earlier",
                                                "storage begins earlier",
                                                "storage begins later",
                                                "storage of another kind",
                                                "storage left out",
                                                "storage added",
                                                "copies out",
                                                "copies back",
                                                "copy issued elsewhere",
                                                "peak"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Difference> differences(const StepMemory& simulated, const StepMemory& executed) {
  std::vector<Difference> all = Comparison(simulated, executed).result();
  std::stable_sort(all.begin(), all.end(), [](const Difference& a, const Difference& b) {
    return std::tie(a.kind, a.at) < std::tie(b.kind, b.at);
  });
  return all;
}

std::string text_of(const Difference& d) {
  std::string text =
      fmt::format("{}: {}: {}", kStepPartNames[static_cast<std::size_t>(d.part)], to_string(d.kind), d.what);
  if (d.kind >= DifferenceKind::storage_lives_longer && d.kind <= DifferenceKind::storage_added)
    text += fmt::format(" ({}, {} bytes, kernels {} to {}, simulated {} to {}, used until {}, simulated {})",
                        to_string(d.executed.kind), d.executed.bytes, d.executed.from, d.executed.to, d.simulated.from,
                        d.simulated.to, d.executed.used_until, d.simulated.used_until);
  if (d.kind >= DifferenceKind::copies_out)
    text += fmt::format(" ({} bytes, simulated {})", d.executed_bytes, d.simulated_bytes);
  return text;
}

}  // namespace memwall
