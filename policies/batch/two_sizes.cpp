#include "policies/batch/two_sizes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "policies/batch/step_alignment.h"
#include "policies/batch/step_sums.h"
#include "policies/trace/trace_edit.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

constexpr std::size_t kNamed = 4;  // of each kind of mismatch

double product(const Shape& shape) {
  double all = 1;
  for (const std::int64_t extent : shape) all *= static_cast<double>(extent);
  return all;
}

// A line through the values at the sizes of the base and of the other trace.
struct Line {
  std::int64_t base = 0, other = 0, wanted = 0;  // sizes

  // Nothing where the result is no whole number, negative, or too large.
  std::optional<std::int64_t> whole(std::int64_t at_base, std::int64_t at_other) const {
    std::int64_t rise = 0, value = 0;
    if (__builtin_sub_overflow(at_other, at_base, &rise) || __builtin_mul_overflow(rise, wanted - base, &rise))
      return std::nullopt;
    if (rise % (other - base) != 0) return std::nullopt;
    if (__builtin_add_overflow(at_base, rise / (other - base), &value) || value < 0) return std::nullopt;
    return value;
  }

  std::optional<Shape> shape(const Shape& at_base, const Shape& at_other) const {
    if (at_base.size() != at_other.size()) return std::nullopt;
    Shape result = at_base;
    for (std::size_t i = 0; i < result.size(); ++i) {
      const auto extent = whole(at_base[i], at_other[i]);
      if (!extent) return std::nullopt;
      result[i] = *extent;
    }
    return result;
  }
};

// What an op's cost follows: the size, or the product of the extents that change with it.
struct Abscissa {
  double base = 0, other = 0, wanted = 0;

  // Proportional where both values are; else on the line through them.
  double value(double at_base, double at_other) const {
    if (at_base == at_other) return at_base;
    if (at_base * other == at_other * base) return at_base * wanted / base;
    if (base == other) return at_base;
    return at_base + (at_other - at_base) * (wanted - base) / (other - base);
  }
};

class ThirdSize {
 public:
  ThirdSize(const Trace& base, const Trace& other, Line line, SizeUnit unit)
      : base_(base),
        other_(other),
        edit_(base, host_),
        result_(edit_.tables()),
        line_(line),
        unit_(unit),
        pairs_(align_steps(base, other)) {}

  Trace run() && {
    require_one_program();
    for (StorageId s = 0; s < base_.storages.size(); ++s) fit_storage(s);
    fit_totals();
    Trace result = std::move(edit_).apply([this](OpId id, Op& op) { fit_op(id, op); });
    require_countable(result);
    explain(result.notes);
    return result;
  }

 private:
  void mismatch(const std::string& what, const std::string& name) {
    std::vector<std::string>& names = mismatches_[what].second;
    ++mismatches_[what].first;
    if (names.size() < kNamed) names.push_back(name);
  }

  std::string describe(StorageId s) const {
    const std::string& label = base_.strings[base_.storages[s].label];
    return label.empty() ? std::to_string(s) : fmt::format("{} {}", s, label);
  }
  std::string describe_op(OpId id) const {
    const Op& op = base_.ops[id];
    std::string name = base_.strings[op.name];
    if (name.empty()) name = to_string(op.kind);
    return op.module == 0 ? fmt::format("{} {}", id, name)
                          : fmt::format("{} {} in {}", id, name, base_.strings[op.module]);
  }

  void require_one_program() const {
    const auto paired = static_cast<std::size_t>(
        std::count_if(pairs_.ops.begin(), pairs_.ops.end(), [](OpId id) { return id != kNoOp; }));
    if (2 * paired >= std::max(base_.ops.size(), other_.ops.size())) return;
    throw UsageError(fmt::format(
        "Traces '{}' and '{}' are not of one program: of {} and {} ops only {} have the same names in the same order.",
        base_.name, other_.name, base_.ops.size(), other_.ops.size(), paired));
  }

  void fit_storage(StorageId s) {
    const Storage& a = base_.storages[s];
    if (pairs_.storages[s] == kNoStorage) return mismatch("storages have no partner and keep their size", describe(s));
    const Storage& b = other_.storages[pairs_.storages[s]];
    const auto shape = line_.shape(base_.shapes[a.shape], other_.shapes[b.shape]);
    const auto bytes = bytes_of_shape(a, b, shape ? *shape : Shape());
    const auto on_line = bytes ? bytes : line_.whole(a.bytes, b.bytes);
    if (!on_line) return mismatch("storages have sizes on no line of whole numbers and keep theirs", describe(s));
    edit_.resize(s, *on_line);
    result_.storages[s].shape = shape ? result_.shapes.intern(*shape) : 0;
  }

  // Where both are whole numbers of elements of one width.
  std::optional<Bytes> bytes_of_shape(const Storage& a, const Storage& b, const Shape& shape) const {
    const double mine = product(base_.shapes[a.shape]), theirs = product(other_.shapes[b.shape]), now = product(shape);
    if (a.shape == 0 || b.shape == 0 || shape.empty() || mine <= 0 || theirs <= 0) return std::nullopt;
    const double width = static_cast<double>(a.bytes) / mine;
    if (width != static_cast<double>(b.bytes) / theirs || width != std::floor(width)) return std::nullopt;
    if (width * now > kMostBytes) return std::nullopt;
    return static_cast<Bytes>(width * now);
  }

  void fit_op(OpId id, Op& op) {
    const OpId partner = pairs_.ops[id];
    if (partner == kNoOp) return mismatch("ops have no partner and stay as they are", describe_op(id));
    const Op &a = base_.ops[id], &b = other_.ops[partner];
    const auto shape = shape_of_work(a, b);
    if (a.shape != 0 && !shape) mismatch("ops have shapes on no line and lose theirs", describe_op(id));
    op.shape = shape ? result_.shapes.intern(*shape) : 0;
    const Abscissa x = abscissa(a, b, shape ? *shape : Shape());
    op.flops = x.value(a.flops, b.flops);
    if (op.flops < 0) {
      op.flops = a.flops;
      mismatch("ops would have negative FLOPs and keep theirs", describe_op(id));
    }
    fit_traffic(id, a, b, op);
    fit_duration(id, a, b, x, op);
    op.waves = std::max(0.0F, static_cast<float>(x.value(a.waves, b.waves)));
    op.kernels = fitting<std::uint16_t>(a.kernels, b.kernels);
    op.framework_calls = fitting<std::uint16_t>(a.framework_calls, b.framework_calls);
  }

  // As many elements as one of its storages has, if it has as many at both sizes: those may grow by two extents.
  std::optional<Shape> shape_of_work(const Op& a, const Op& b) const {
    const Shape &mine = base_.shapes[a.shape], &theirs = other_.shapes[b.shape];
    if (mine.size() == 1 && theirs.size() == 1)
      for (const Use& use : base_.uses_of(a)) {
        const StorageId partner = pairs_.storages[use.storage];
        if (partner == kNoStorage || result_.storages[use.storage].shape == 0) continue;
        const double now = product(result_.shapes[result_.storages[use.storage].shape]);
        const bool as_many = product(base_.shapes[base_.storages[use.storage].shape]) == static_cast<double>(mine[0]) &&
                             product(other_.shapes[other_.storages[partner].shape]) == static_cast<double>(theirs[0]);
        if (as_many && now > 0 && now < kMostBytes) return Shape{static_cast<std::int64_t>(now)};
      }
    return line_.shape(mine, theirs);
  }

  template <typename Number>
  Number fitting(Number a, Number b) const {
    const auto value = line_.whole(a, b);
    return value && *value >= std::min<Number>(a, 1) && *value <= 0xffff ? static_cast<Number>(*value) : a;
  }

  Abscissa abscissa(const Op& a, const Op& b, const Shape& shape) const {
    Abscissa x{static_cast<double>(line_.base), static_cast<double>(line_.other), static_cast<double>(line_.wanted)};
    if (shape.empty() || a.shape == 0) return x;
    const Shape &mine = base_.shapes[a.shape], &theirs = other_.shapes[b.shape];
    x = {1, 1, 1};
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (mine[i] == theirs[i]) continue;
      x.base *= static_cast<double>(mine[i]);
      x.other *= static_cast<double>(theirs[i]);
      x.wanted *= static_cast<double>(shape[i]);
    }
    return x.base > 0 && x.other > 0 && x.base != x.other
               ? x
               : Abscissa{static_cast<double>(line_.base), static_cast<double>(line_.other),
                          static_cast<double>(line_.wanted)};
  }

  static double used(std::span<const Use> uses, const std::vector<Storage>& storages) {
    double bytes = 0;
    for (const Use& use : uses) bytes += static_cast<double>(storages[use.storage].bytes);
    return bytes;
  }

  // Elements of a product's three matrices, each read or written once: more than its storages hold where an operand
  // is a view of fewer heads. 0 of other work.
  static double elements_of_product(const Op& op, const Shape& s) {
    if (op.operator_class != OperatorClass::gemm || s.size() != 4) return 0;
    const auto at = [&](std::size_t i) { return static_cast<double>(s[i]); };
    return at(0) * (at(1) * at(3) + at(3) * at(2) + at(1) * at(2));
  }

  // An op that moves the same share of its storages, or of its matrices, at both sizes moves it at the third; others
  // lie on the line.
  void fit_traffic(OpId id, const Op& a, const Op& b, Op& op) {
    const auto same_share = [&](double mine, double theirs, double now) {
      const bool same =
          mine > 0 && theirs > 0 && static_cast<double>(a.bytes) * theirs == static_cast<double>(b.bytes) * mine;
      if (same) op.bytes = std::llround(std::min(static_cast<double>(a.bytes) * (now / mine), kMostBytes));
      return same;
    };
    if (same_share(used(base_.uses_of(a), base_.storages), used(other_.uses_of(b), other_.storages),
                   used(base_.uses_of(a), result_.storages)))
      return;
    if (same_share(elements_of_product(a, base_.shapes[a.shape]), elements_of_product(b, other_.shapes[b.shape]),
                   elements_of_product(op, result_.shapes[op.shape])))
      return;
    if (const auto bytes = line_.whole(a.bytes, b.bytes))
      op.bytes = *bytes;
    else
      mismatch("ops move bytes on no line of whole numbers and keep theirs", describe_op(id));
  }

  void fit_duration(OpId id, const Op& a, const Op& b, const Abscissa& x, Op& op) {
    const auto mine = static_cast<double>(a.duration.count()), theirs = static_cast<double>(b.duration.count());
    const double value = x.value(mine, theirs);
    if (value > kMostPicoseconds)
      return mismatch("ops would last too long to count and keep their time", describe_op(id));
    if (value < 0 || (value == 0 && mine > 0)) {
      op.duration = std::min(a.duration, b.duration);
      return mismatch("ops would last no time: they take the shorter of their two", describe_op(id));
    }
    op.duration = from_picoseconds(value);
    if (a.origin == Origin::measured && a.duration.count() > 0) op.origin = Origin::transferred;
  }

  void fit_totals() {
    const Abscissa x{static_cast<double>(line_.base), static_cast<double>(line_.other),
                     static_cast<double>(line_.wanted)};
    result_.samples_per_step = x.value(base_.samples_per_step, other_.samples_per_step);
    result_.tokens_per_step = std::max(0.0, x.value(base_.tokens_per_step, other_.tokens_per_step));
    if (const auto bytes = line_.whole(base_.untracked_bytes, other_.untracked_bytes)) result_.untracked_bytes = *bytes;
  }

  void require_countable(const Trace& result) const {
    StepSums sums;
    for (const Storage& s : result.storages) sums.add(s);
    for (const Op& op : result.ops) sums.add(op);
    if (!sums.countable())
      throw UsageError(
          fmt::format("At {} {} the step of '{}' {}", line_.wanted, to_string(unit_), base_.name, sums.refusal()));
  }

  void explain(std::vector<std::string>& notes) const {
    const std::size_t unmatched =
        other_.ops.size() - static_cast<std::size_t>(std::count_if(pairs_.ops.begin(), pairs_.ops.end(),
                                                                   [](OpId id) { return id != kNoOp; }));
    notes.push_back(fmt::format(
        "two sizes: {0} {1} per step from captures at {2} and {3} {1}, on a line through both; the host's program is "
        "that of {2}.",
        line_.wanted, to_string(unit_), line_.base, line_.other));
    for (const auto& [what, all] : mismatches_) {
      std::string names;
      for (const std::string& name : all.second) names += (names.empty() ? "" : ", ") + name;
      notes.push_back(
          fmt::format("two sizes: {} {}: {}{}.", all.first, what, names, all.first > all.second.size() ? ", …" : ""));
    }
    if (unmatched > 0)
      notes.push_back(fmt::format("two sizes: not in the result: {} of the capture at {} {}.",
                                  counted_text(unmatched, "op"), line_.other, to_string(unit_)));
  }

  const Trace& base_;
  const Trace& other_;
  const HostCosts host_{};  // no calls are added
  TraceEdit edit_;
  Trace& result_;  // its tables
  const Line line_;
  const SizeUnit unit_;
  const StepAlignment pairs_;
  std::map<std::string, std::pair<std::size_t, std::vector<std::string>>> mismatches_;
};

double size_of(const Trace& t, SizeUnit unit) {
  return unit == SizeUnit::samples ? t.samples_per_step : t.tokens_per_step;
}

}  // namespace

std::string_view to_string(SizeUnit unit) { return unit == SizeUnit::samples ? "samples" : "tokens"; }

SizeUnit unit_of_sizes(const Trace& first, const Trace& second) {
  const SizeUnit unit = first.samples_per_step != second.samples_per_step ? SizeUnit::samples : SizeUnit::tokens;
  const double a = size_of(first, unit), b = size_of(second, unit);
  if (a == b)
    throw UsageError(
        fmt::format("Both captures ('{}' and '{}') have {} samples and {} tokens per step; a line needs two sizes.",
                    first.name, second.name, first.samples_per_step, first.tokens_per_step));
  for (const double n : {a, b})
    if (n < 1 || n != std::floor(n) || n > 1e15)
      throw UsageError(fmt::format(
          "The captures ('{}' and '{}') have {} and {} {} per step; expected two different whole numbers (0 = the "
          "file does not say).",
          first.name, second.name, a, b, to_string(unit)));
  return unit;
}

Trace at_size(const Trace& first, const Trace& second, std::int64_t size) {
  const SizeUnit unit = unit_of_sizes(first, second);
  const double a = size_of(first, unit), b = size_of(second, unit), n = static_cast<double>(size);
  // The nearer one, by ratio: a program at one sample may lack the sums over samples.
  const bool first_is_nearer = std::abs(std::log(n / a)) <= std::abs(std::log(n / b));
  const Trace &base = first_is_nearer ? first : second, &other = first_is_nearer ? second : first;
  if (size_of(base, unit) == n) return base;
  const Line line{static_cast<std::int64_t>(size_of(base, unit)), static_cast<std::int64_t>(size_of(other, unit)),
                  size};
  return ThirdSize(base, other, line, unit).run();
}

}  // namespace memwall
