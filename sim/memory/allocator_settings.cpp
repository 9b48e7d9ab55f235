#include "sim/memory/allocator_settings.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

#include "sim/error.h"
#include "sim/memory/pytorch_constants.h"
#include "sim/number_text.h"

namespace memwall {
namespace {

const char* const kVariable = "PYTORCH_ALLOC_CONF";

std::string mebibytes(Bytes bytes) { return std::to_string(bytes / MiB(1)); }

// Reads "key:value,key:[a:b,c:d]". White space counts nowhere; ',', ':', '[' and ']' stand for themselves, everything
// between them is one word.
class SettingsText {
 public:
  explicit SettingsText(const std::string& text) {
    bool open = false;
    for (const char c : text) {
      if (std::isspace(static_cast<unsigned char>(c))) continue;
      const bool mark = c == ',' || c == ':' || c == '[' || c == ']';
      if (mark || !open) words_.emplace_back();
      words_.back() += c;
      open = !mark;
    }
  }

  bool done() const { return at_ == words_.size(); }
  std::string next() { return done() ? "" : words_[at_++]; }
  bool take(const std::string& word) {
    if (done() || words_[at_] != word) return false;
    ++at_;
    return true;
  }
  void expect(const std::string& word, const std::string& behind) {
    if (take(word)) return;
    throw UsageError(std::string(kVariable) + ": found " + (done() ? "the end" : "'" + words_[at_] + "'") +
                     " behind '" + behind + "', expected '" + word + "'.");
  }

 private:
  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

// The value of one key, and what to say where it is wrong.
class Value {
 public:
  Value(std::string key, std::string word) : key_(std::move(key)), word_(std::move(word)) {}

  [[noreturn]] void refuse(const std::string& expected) const {
    throw UsageError(std::string(kVariable) + ": " + key_ + " is " + (word_.empty() ? "empty" : "'" + word_ + "'") +
                     ", expected " + expected + ".");
  }

  bool boolean() const {
    if (word_ != "True" && word_ != "False") refuse("True or False");
    return word_ == "True";
  }

  // Numbers beyond 64 bits count as the largest one.
  std::uint64_t whole(const std::string& expected) const {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(word_.data(), word_.data() + word_.size(), number);
    if (end != word_.data() + word_.size() || word_.empty() || error == std::errc::invalid_argument) refuse(expected);
    return error == std::errc::result_out_of_range ? ~0ULL : number;
  }

  // `of`: the setting that `least` is, if any.
  Bytes size_in_mebibytes(Bytes least, const std::string& of = "") const {
    const std::string expected =
        "a whole number of MiB, at least " + mebibytes(least) + (of.empty() ? "" : ", which is " + of);
    const std::uint64_t number = whole(expected);
    if (number < static_cast<std::uint64_t>(least / MiB(1))) refuse(expected);
    return static_cast<Bytes>(std::min<std::uint64_t>(number, AllocatorSettings::kNoLimit / MiB(1))) * MiB(1);
  }

  std::uint32_t divisions(bool zero_too) const {
    const std::string expected = "a power of two up to 2147483648" + std::string(zero_too ? ", or 0 for none" : "");
    const std::uint64_t number = whole(expected);
    if (number > (1ULL << 31) || (!std::has_single_bit(number) && !(zero_too && number == 0))) refuse(expected);
    return static_cast<std::uint32_t>(number);
  }

  double share(bool one_too) const {
    const std::string expected = std::string("a number above 0 and ") + (one_too ? "at most 1" : "below 1");
    double number = 0;
    const auto [end, error] = std::from_chars(word_.data(), word_.data() + word_.size(), number);
    const bool read = error == std::errc() && end == word_.data() + word_.size();
    if (!read || !(number > 0 && (number < 1 || (one_too && number == 1)))) refuse(expected);
    return number;
  }

  // "0.5": a share of the device's memory. "40G": as many GiB.
  void reserve(AllocatorSettings& settings) const {
    const bool absolute = !word_.empty() && (word_.back() == 'G' || word_.back() == 'g');
    const char* const end = word_.data() + word_.size() - (absolute ? 1 : 0);
    double number = 0;
    const auto [read, error] = std::from_chars(word_.data(), end, number);
    if (error != std::errc() || read != end || !std::isfinite(number) || number <= 0)
      refuse("a share of the device above 0, or GiB, such as 0.5 or 40G");
    constexpr double kMost = 0x1p60;  // far beyond any device
    settings.expandable_reserve_share = absolute ? 0 : number;
    settings.expandable_reserve = absolute ? static_cast<Bytes>(std::min(number * 0x1p30, kMost)) : 0;
  }

 private:
  std::string key_, word_;
};

using Divisions = std::array<std::uint32_t, 16>;

// "[256:1,512:2,>:8]": from 256 MiB on 1 division, and so on. The first value holds for everything below, '>' for
// everything above the last one (and never for the lowest entry).
Divisions parse_divisions(const std::string& key, SettingsText& text) {
  Divisions divisions{};
  if (!text.take("[")) {
    divisions.fill(Value(key, text.next()).divisions(false));
    return divisions;
  }
  std::size_t from = 1;  // entry behind the last one listed
  bool first = true;     // boundary
  for (bool begun = false; !text.take("]"); begun = true) {
    if (begun) text.expect(",", key);
    const std::string boundary = text.next();
    text.expect(":", boundary);
    const std::uint32_t count = Value(key, text.next()).divisions(true);
    if (boundary == ">") {
      std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(from), divisions.end(), count);
    } else {
      const std::string expected = "boundaries that are powers of two, in MiB, or '>'";
      const std::uint64_t mebibytes = Value(key, boundary).whole(expected);
      if (!std::has_single_bit(mebibytes)) Value(key, boundary).refuse(expected);
      const std::size_t entry = std::min<std::size_t>(std::bit_width(mebibytes) - 1u, divisions.size() - 1);
      if (first) std::fill(divisions.begin(), divisions.begin() + static_cast<std::ptrdiff_t>(entry), count);
      divisions[entry] = count;
      from = entry + 1;
      first = false;
    }
  }
  return divisions;
}

using Setter = void (*)(const std::string& key, SettingsText& text, AllocatorSettings& settings);

struct Key {
  const char* name;
  Setter set;
};

// PyTorch reads it before everything else, as others may not be less.
void read_large_segment_size(const std::string& key, SettingsText& text, AllocatorSettings& s) {
  // Every request under kOwnSegment must fit. The upper end keeps 9/8 of a device in whole pages within 64 bits.
  const Value value(key, text.next());
  s.large_segment_size = value.size_in_mebibytes(kOwnSegment + MiB(1));
  if (s.large_segment_size > GiB(1024)) value.refuse("at most 1048576 MiB");
}

Bytes at_least_a_large_segment(const std::string& key, SettingsText& text, const AllocatorSettings& s) {
  const bool changed = s.large_segment_size != AllocatorSettings{}.large_segment_size;
  return Value(key, text.next()).size_in_mebibytes(s.large_segment_size, changed ? "large_segment_size_mb" : "");
}

[[noreturn]] void refuse_unmodelled(const std::string& key, const std::string& why) {
  throw UsageError(std::string(kVariable) + ": " + key + " is not modelled: " + why + ".");
}

void read_boolean(const std::string& key, SettingsText& text, AllocatorSettings&) { Value(key, text.next()).boolean(); }

constexpr const char* kLargeSegmentSize = "large_segment_size_mb";

// In the order in which to_string writes them; then those that change nothing here.
constexpr Key kKeys[] = {
    {"backend",
     [](const std::string& key, SettingsText& text, AllocatorSettings& s) {
       const std::string name = text.next();
       if (name != "native" && name != "cudaMallocAsync") Value(key, name).refuse("native or cudaMallocAsync");
       s.backend =
           name == "native" ? AllocatorSettings::Backend::native : AllocatorSettings::Backend::cuda_malloc_async;
     }},
    {"max_split_size_mb", [](const std::string& key, SettingsText& text,
                             AllocatorSettings& s) { s.max_split_size = at_least_a_large_segment(key, text, s); }},
    {"max_non_split_rounding_mb",
     [](const std::string& key, SettingsText& text, AllocatorSettings& s) {
       s.max_non_split_rounding = at_least_a_large_segment(key, text, s);
     }},
    {kLargeSegmentSize, read_large_segment_size},
    {"garbage_collection_threshold",
     [](const std::string& key, SettingsText& text, AllocatorSettings& s) {
       s.garbage_collection_threshold = Value(key, text.next()).share(false);
     }},
    {"per_process_memory_fraction",
     [](const std::string& key, SettingsText& text, AllocatorSettings& s) {
       s.per_process_memory_fraction = Value(key, text.next()).share(true);
     }},
    {"roundup_power2_divisions", [](const std::string& key, SettingsText& text,
                                    AllocatorSettings& s) { s.roundup_power2_divisions = parse_divisions(key, text); }},
    {"expandable_segments", [](const std::string& key, SettingsText& text,
                               AllocatorSettings& s) { s.expandable_segments = Value(key, text.next()).boolean(); }},
    {"pinned_reserve_segment_size_mb",
     [](const std::string& key, SettingsText& text, AllocatorSettings& s) {
       s.pinned_reserve_segment_size = Value(key, text.next()).size_in_mebibytes(MiB(1));
     }},
    {"pinned_pool", [](const std::string& key, SettingsText& text,
                       AllocatorSettings& s) { s.pinned_pool = Value(key, text.next()).boolean(); }},
    {"expandable_segments_reserve",
     [](const std::string& key, SettingsText& text, AllocatorSettings& s) { Value(key, text.next()).reserve(s); }},
    {"expandable_segments_reserve_by_class",
     [](const std::string& key, SettingsText&, AllocatorSettings&) {
       refuse_unmodelled(key, "which class a stream belongs to is not recorded; expandable_segments_reserve is");
     }},
    {"throw_on_cudamalloc_oom",
     [](const std::string& key, SettingsText& text, AllocatorSettings&) {
       if (Value(key, text.next()).boolean())
         refuse_unmodelled(key + ":True", "here a request beyond the memory fraction is tried again after a release");
     }},
    {"release_lock_on_cudamalloc", read_boolean},
    {"release_lock_on_hipmalloc", read_boolean},
    {"pinned_use_cuda_host_register", read_boolean},
    {"pinned_use_hip_host_register", read_boolean},
    {"pinned_use_background_threads", read_boolean},
    {"pinned_free_catch_all", read_boolean},
    {"graph_capture_record_stream_reuse", read_boolean},
    {"pinned_num_register_threads",
     [](const std::string& key, SettingsText& text, AllocatorSettings&) {
       const Value value(key, text.next());
       const std::string expected = "a power of two, at most 128";
       const std::uint64_t number = value.whole(expected);
       if (!std::has_single_bit(number) || number > 128) value.refuse(expected);
     }},
};

const Key& find_key(const std::string& name) {
  std::vector<std::string> known;
  for (const Key& key : kKeys) {
    if (name == key.name) return key;
    known.emplace_back(key.name);
  }
  throw UsageError(std::string(kVariable) + ": there is no setting '" + name + "'." + did_you_mean(name, known));
}

// As parse_divisions reads it, equal entries at both ends written once.
std::string divisions_text(const Divisions& divisions) {
  const auto differs = [](std::uint32_t other) { return [other](std::uint32_t count) { return count != other; }; };
  const auto first = std::find_if(divisions.begin(), divisions.end(), differs(divisions.front()));
  if (first == divisions.end() && divisions.front() > 0) return std::to_string(divisions.front());
  const auto last = std::find_if(divisions.rbegin(), divisions.rend(), differs(divisions.back())).base();
  std::string text;
  for (auto it = first - 1; it < last; ++it)
    text += std::to_string(1ULL << (it - divisions.begin())) + ":" + std::to_string(*it) + ",";
  return "[" + text + ">:" + std::to_string(divisions.back()) + "]";
}

}  // namespace

AllocatorSettings parse_allocator_settings(const std::string& text) {
  AllocatorSettings settings;
  for (SettingsText words(text); !words.done();)
    if (words.next() == kLargeSegmentSize && words.take(":"))
      read_large_segment_size(kLargeSegmentSize, words, settings);
  settings.max_non_split_rounding = settings.large_segment_size;
  SettingsText words(text);
  while (!words.done()) {
    const std::string name = words.next();
    const Key& key = find_key(name);
    words.expect(":", name);
    key.set(name, words, settings);
    if (!words.done()) words.expect(",", name);
  }
  return settings;
}

std::string to_string(const AllocatorSettings& settings) {
  const AllocatorSettings defaults;
  std::string text;
  const auto add = [&](const char* key, bool differs, const std::string& value) {
    if (differs) text += (text.empty() ? "" : ",") + std::string(key) + ":" + value;
  };
  const AllocatorSettings& s = settings;
  add("backend", s.backend != defaults.backend, "cudaMallocAsync");
  add("max_split_size_mb", s.max_split_size != defaults.max_split_size, mebibytes(s.max_split_size));
  add("max_non_split_rounding_mb", s.max_non_split_rounding != s.large_segment_size,
      mebibytes(s.max_non_split_rounding));
  add("large_segment_size_mb", s.large_segment_size != defaults.large_segment_size, mebibytes(s.large_segment_size));
  add("garbage_collection_threshold", s.garbage_collection_threshold != 0,
      shortest_text(s.garbage_collection_threshold));
  add("per_process_memory_fraction", s.per_process_memory_fraction != 0, shortest_text(s.per_process_memory_fraction));
  if (s.roundup_power2_divisions != defaults.roundup_power2_divisions)
    add("roundup_power2_divisions", true, divisions_text(s.roundup_power2_divisions));
  add("expandable_segments", s.expandable_segments, "True");
  add("expandable_segments_reserve", s.expandable_reserve_share != 0, shortest_text(s.expandable_reserve_share));
  add("expandable_segments_reserve", s.expandable_reserve != 0,
      shortest_text(static_cast<double>(s.expandable_reserve) / 0x1p30) + "G");
  add("pinned_reserve_segment_size_mb", s.pinned_reserve_segment_size != 0, mebibytes(s.pinned_reserve_segment_size));
  add("pinned_pool", !s.pinned_pool, "False");
  return text;
}

Bytes round_request(const AllocatorSettings& settings, Bytes bytes) {
  assert(bytes > 0 && bytes < (Bytes{1} << 60));
  if (bytes < kQuantum) return kQuantum;
  const auto size = static_cast<std::uint64_t>(bytes);
  const int power = std::bit_width(size) - 1;
  const Bytes divisions = settings.roundup_power2_divisions[static_cast<std::size_t>(std::clamp(power - 20, 0, 15))];
  if (divisions <= 1 || bytes <= kQuantum * divisions) return round_up(bytes, kQuantum);
  if (std::has_single_bit(size)) return bytes;
  const Bytes floor = Bytes{1} << power;
  const Bytes step = floor / divisions;
  return step == 0 ? floor * 2 : round_up(bytes, step);
}

}  // namespace memwall
