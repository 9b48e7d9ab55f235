#include "models/workload/import/tables/memory_timeline.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <vector>

#include "models/workload/import/bytes/json_source.h"
#include "models/workload/import/bytes/quote_for_message.h"
#include "models/workload/import/timed/event_order.h"
#include "models/workload/import/timed/imported_step.h"
#include "sim/error.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

using std::string_view;

constexpr std::int64_t kPreexisting = 1, kCreate = 2, kNewVersion = 3, kDestroy = 4;
constexpr std::array<string_view, 8> kCategories{"parameter",  "optimizer state", "input",           "temporary",
                                                 "activation", "gradient",        "autograd detail", "unknown"};
constexpr std::int64_t kUnknown = 7;
constexpr Bytes kMostRowBytes = Bytes{1} << 44;
constexpr std::size_t kMostStorages = 0x3fffffff;

StorageKind kind_of(std::int64_t category) {
  constexpr StorageKind kinds[] = {StorageKind::parameter,  StorageKind::optimizer_state, StorageKind::input,
                                   StorageKind::workspace,  StorageKind::activation,      StorageKind::gradient,
                                   StorageKind::activation, StorageKind::unknown};
  return kinds[category];
}

struct Row {
  std::int64_t time = 0, action = 0, bytes = 0, category = 0;
};

class TimelineReader {
 public:
  explicit TimelineReader(const std::filesystem::path& path) : path_(path), json_(path) {}

  ImportedStep run() {
    builder_.add_thread("host");
    builder_.add_stream("default", StreamRole::compute);
    first_ = mark("window");
    if (!json_.next_member()) json_.fail("the list is empty.");
    while (const auto piece = json_.next_element()) take(parse(*piece));
    if (rows_ == 0) json_.fail("the list is empty; expected rows [time, action, bytes, category].");
    if (leaving_) ++unpaired_;
    finish();
    return std::move(step_);
  }

 private:
  OpId mark(string_view name) {
    Op op;
    op.name = builder_.trace().strings.intern(name);
    return builder_.append(op);
  }

  Row parse(string_view piece) {
    ++rows_;
    simdjson::dom::array array;
    Row row;
    std::array<std::int64_t*, 4> fields{&row.time, &row.action, &row.bytes, &row.category};
    std::size_t found = 0;
    bool good = parser_.parse(piece.data(), piece.size(), false).get(array) == simdjson::SUCCESS;
    if (good)
      for (const simdjson::dom::element value : array) {
        good = good && found < fields.size() && value.get(*fields[found]) == simdjson::SUCCESS;
        ++found;
      }
    if (!good || found != fields.size())
      fail(fmt::format("found {}; expected four whole numbers: [time in ns, action, bytes, category].",
                       quote_for_message(piece)));
    if (row.bytes < -kMostRowBytes || row.bytes > kMostRowBytes)
      fail(fmt::format("{} bytes; expected at most 2^44.", row.bytes));
    return row;
  }

  [[noreturn]] void fail(const std::string& sentence) const {
    throw InputError(fmt::format("{}: row {}: {}", path_.string(), rows_, sentence));
  }

  void take(const Row& row) {
    if (row.action < kPreexisting || row.action > kDestroy) {
      ++unknown_actions_;
      return;
    }
    Row r = row;
    if (r.category < 0 || r.category > kUnknown) {
      ++unknown_categories_;
      r.category = kUnknown;
    }
    sums_[static_cast<std::size_t>(r.category)] += r.bytes;
    pass_time(r.time);
    if (r.action == kNewVersion) return new_version(r);
    if (r.action == kDestroy) return destroy(r);
    create(r, r.action == kPreexisting);
  }

  // The host's time between events; those from before the window have none.
  void pass_time(std::int64_t time) {
    if (time < 0) return;
    if (time > std::int64_t{1} << 62) fail(fmt::format("the time {} ns; expected less than 2^62.", time));
    if (!latest_) {
      earliest_ = time;
      latest_ = time;
    }
    if (time < *latest_) ++out_of_order_;
    if (time <= *latest_) return;
    if (time - earliest_ > kLongestWindow) fail("the rows up to here span more than ten days.");
    gap_ += nanoseconds(time - *latest_);
    latest_ = time;
  }

  std::vector<StorageId>& pool(Bytes bytes, std::int64_t category) { return live_[{bytes, category}]; }

  void append(OpKind kind, StorageId storage) {
    Op op;
    op.kind = kind;
    op.target = storage;
    op.host_gap = gap_;
    gap_ = {};
    builder_.append(op);
  }

  void create(const Row& r, bool preexisting) {
    if (r.bytes < 0) fail(fmt::format("an allocation of {} bytes.", r.bytes));
    if (created_ + preexisting_ > kMostStorages) fail("more than a billion storages.");
    const StorageId storage = builder_.add_storage(r.bytes, kind_of(r.category), "hbm",
                                                   kCategories[static_cast<std::size_t>(r.category)], preexisting);
    pool(r.bytes, r.category).push_back(storage);
    // What is called preexisting after something was made or freed is allocated there and then.
    const bool late = preexisting && created_ + destroyed_ > 0;
    if (late) builder_.trace().storages[storage].preexisting = false;
    late_ += late;
    ++(preexisting ? preexisting_ : created_);
    if (!preexisting || late) append(OpKind::alloc, storage);
  }

  // The youngest storage of that size and category, taken out of it.
  std::optional<StorageId> youngest(Bytes bytes, std::int64_t category) {
    const auto found = live_.find({bytes, category});
    if (found == live_.end() || found->second.empty()) return std::nullopt;
    const StorageId storage = found->second.back();
    found->second.pop_back();
    return storage;
  }

  void destroy(const Row& r) {
    if (r.bytes > 0) fail(fmt::format("a DESTROY of {} bytes; expected a number below zero.", r.bytes));
    const auto storage = youngest(-r.bytes, r.category);
    ++destroyed_;
    if (storage)
      append(OpKind::free, *storage);
    else
      ++unknown_frees_;
  }

  void new_version(const Row& r) {
    if (!leaving_ || leaving_->bytes != -r.bytes || r.bytes < 0) {
      if (leaving_) ++unpaired_;
      leaving_ = r;
      return;
    }
    const Row old = *leaving_;
    leaving_.reset();
    ++versions_;
    moved_ += old.category != r.category;
    if (old.category == r.category) return;
    const auto storage = youngest(r.bytes, old.category);
    if (!storage) {
      ++unknown_frees_;
      return;
    }
    pool(r.bytes, r.category).push_back(*storage);
    if (r.category == kUnknown) return;
    Storage& s = builder_.trace().storages[*storage];
    s.kind = kind_of(r.category);
    s.label = builder_.trace().strings.intern(kCategories[static_cast<std::size_t>(r.category)]);
  }

  void finish() {
    const OpId last = mark("window");
    step_.trace = std::move(builder_).finish();
    Trace& trace = step_.trace;
    trace.steps.push_back({"window", first_, last});
    trace.name = path_.stem().string();
    trace.knowledge = {.timing = true, .allocations = true};
    trace.constants = ReplayConstants{.event_latency = Duration{}, .launch_queue_depth = 0};
    step_.files = {path_};
    step_.report.push_back(fmt::format("{} rows: {} preexisting, {} created, {} new versions, {} destroyed.", rows_,
                                       preexisting_, created_, versions_, destroyed_));
    std::string sums = "Bytes at the end by category:";
    for (std::size_t i = 0; i < sums_.size(); ++i) sums += fmt::format(" {} {},", kCategories[i], sums_[i]);
    sums.back() = '.';
    step_.report.push_back(sums);
    add_decision(
        step_, "device work",
        "A memory timeline has no kernels: the trace knows allocations and the host's time between them, and its "
        "duration is the host's.", 0, 0, NoteKind::missing);
    step_.decisions.push_back(
        {"machine", "The file does not say which GPU it was captured on: --measured-on does.", 0, 0});
    add_decision(step_, "storages by size and category",
                 fmt::format("The file has no addresses: each of {} destroyed is the youngest storage of its size and "
                             "category ({} found none).",
                             destroyed_, unknown_frees_),
                 destroyed_ - std::min(unknown_frees_, destroyed_), destroyed_, NoteKind::assumed);
    add_decision(
        step_, "kinds by category",
        fmt::format("{} of {} new versions change the category; a storage has one kind, that of its last known "
                    "category, so sums by kind differ from the file's by category where it changed.",
                    moved_, versions_), 0, 0, NoteKind::assumed);
    add_faults();
  }

  void add_faults() {
    const auto say = [&](std::uint64_t count, const char* what) {
      if (count > 0) add_decision(step_, "rows", fmt::format("{} {}", count, what), 0, 0, NoteKind::missing);
    };
    say(late_, "storages are called preexisting after others were made; they count as made there.");
    say(unpaired_, "rows of a new version have no second row; they are left out.");
    say(unknown_actions_, "rows have an action that is not known here; they are left out.");
    say(unknown_categories_, "rows have a category that is not known here; they count as unknown.");
    say(out_of_order_, "rows have an earlier time than the row before; they count as simultaneous.");
  }

  std::filesystem::path path_;
  JsonSource json_;
  simdjson::dom::parser parser_;
  TraceBuilder builder_;
  ImportedStep step_;
  std::map<std::pair<Bytes, std::int64_t>, std::vector<StorageId>> live_;  // by size and category, youngest last
  std::array<std::int64_t, 8> sums_{};
  std::optional<Row> leaving_;  // first row of a new version
  std::optional<std::int64_t> latest_;
  std::int64_t earliest_ = 0;
  Duration gap_{};
  OpId first_ = 0;
  std::uint64_t rows_ = 0, created_ = 0, destroyed_ = 0, preexisting_ = 0, versions_ = 0, moved_ = 0, late_ = 0;
  std::uint64_t unknown_frees_ = 0, unpaired_ = 0, unknown_actions_ = 0, unknown_categories_ = 0, out_of_order_ = 0;
};

}  // namespace

bool recognizes_memory_timeline(const FileHead& head) {
  // "[[-1, 1, 37888, 7]": a list of lists of four whole numbers, of which the second is an action.
  std::string compact;
  for (const char c : head.text.substr(0, 256))
    if (std::isspace(static_cast<unsigned char>(c)) == 0) compact += c;
  if (!compact.starts_with("[[")) return false;
  const std::size_t end = compact.find(']');
  if (end == std::string::npos) return false;
  const string_view row = string_view(compact).substr(2, end - 2);
  return row.find_first_not_of("-0123456789,") == string_view::npos && std::count(row.begin(), row.end(), ',') == 3;
}

ImportedStep import_memory_timeline(const std::filesystem::path& path, const ImportSettings&) {
  return TimelineReader(path).run();
}

}  // namespace memwall
