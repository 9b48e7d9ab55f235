// Reads .mwi files by the table in traces/capture/inject/FORMAT.md, and knows nothing of what records are for.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "models/workload/import/bytes/byte_source.h"
#include "models/workload/import/bytes/utf8.h"
#include "models/workload/import/cupti/inject_fields.h"
#include "models/workload/import/cupti/inject_reader.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::string_view kMagic = "\x89MWI\r\n\x1a\n";
constexpr std::uint32_t kByteOrder = 0x01020304, kVersion = 1, kHeaderBytes = 32, kLongestHeader = 1 << 16;
constexpr std::uint32_t kLongestName = 1 << 20;   // the library writes at most 16 KiB
constexpr std::size_t kMostRecordsOfKind = 0xfffffff0;  // of one kind: indices have 32 bits
constexpr std::uint32_t kRecordHeader = 8;

class InjectReader {
 public:
  explicit InjectReader(const std::filesystem::path& path) : source_(path) { records_.path = path; }

  CuptiRecords read() {
    read_header();
    std::array<char, kRecordHeader> head{};
    for (;;) {
      const std::size_t got = source_.read(head.data(), head.size());
      if (got < head.size()) {
        records_.counts.cut = got > 0;
        break;
      }
      InjectFields fields(head.data());
      const std::uint16_t kind = fields.u16();
      fields.skip(2);
      if (!read_record(kind, fields.u32())) {
        records_.counts.cut = true;
        break;
      }
    }
    return std::move(records_);
  }

 private:
  using Store = void (InjectReader::*)(InjectFields);
  struct Kind {
    const char* name;
    std::uint32_t bytes;  // of the fields that are known
    Store store;
  };
  static constexpr std::uint16_t kString = 1;
  // By number; FORMAT.md has the same table.
  static const Kind& kind_of(std::uint16_t number) {
    static constexpr Kind kinds[] = {{"unknown", 0, nullptr},
                                     {"string", 8, nullptr},
                                     {"process", 32, &InjectReader::process},
                                     {"clock", 24, &InjectReader::nothing},
                                     {"device", 80, &InjectReader::device},
                                     {"context", 16, &InjectReader::context},
                                     {"stream", 16, &InjectReader::nothing},
                                     {"kernel", 88, &InjectReader::kernel},
                                     {"copy", 64, &InjectReader::copy},
                                     {"memset", 64, &InjectReader::memset},
                                     {"synchronization", 48, &InjectReader::synchronization},
                                     {"event", 24, &InjectReader::event},
                                     {"memory", 64, &InjectReader::memory},
                                     {"pool", 64, &InjectReader::pool},
                                     {"unified memory", 56, &InjectReader::unified},
                                     {"call", 40, &InjectReader::call},
                                     {"marker", 32, &InjectReader::marker},
                                     {"external correlation", 16, &InjectReader::nothing},
                                     {"overhead", 24, &InjectReader::overhead},
                                     {"graph", 40, &InjectReader::graph},
                                     {"refused", 16, &InjectReader::refused},
                                     {"losses", 48, &InjectReader::losses},
                                     {"end", 48, &InjectReader::end}};
    return number < std::size(kinds) ? kinds[number] : kinds[0];
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(records_.path.string() + ": at byte " + std::to_string(at_) + ": " + what);
  }

  // --- bytes ---
  void read_header() {
    std::array<char, kHeaderBytes> head{};
    const std::size_t got = source_.read(head.data(), head.size());
    if (!is_mwi({head.data(), got})) fail("this is no .mwi file; expected its first 8 bytes, \\x89MWI\\r\\n\\x1a\\n.");
    if (got < head.size()) fail("the file ends inside its header; expected 32 bytes.");
    InjectFields fields(head.data());
    fields.skip(kMagic.size());
    const std::uint32_t order = fields.u32(), version = fields.u32(), bytes = fields.u32();
    if (order != kByteOrder) fail("found another byte order; expected little-endian numbers.");
    if (version != kVersion)
      fail("found version " + std::to_string(version) + " of the format; expected " + std::to_string(kVersion) + ".");
    if (bytes < kHeaderBytes || bytes > kLongestHeader || bytes % 8 != 0)
      fail("found a header of " + std::to_string(bytes) + " bytes; expected 32 or, of a later library, a few more.");
    skip(bytes - kHeaderBytes);
    at_ = bytes;
  }

  // Returns false at the end of the file.
  bool skip(std::uint64_t bytes) {
    std::array<char, 4096> ignored{};
    while (bytes > 0) {
      const std::size_t got = source_.read(ignored.data(), std::min<std::uint64_t>(bytes, ignored.size()));
      if (got == 0) return false;
      bytes -= got;
    }
    return true;
  }

  // Returns false where the file ends inside the record.
  bool read_record(std::uint16_t number, std::uint32_t bytes) {
    const Kind& kind = kind_of(number);
    if (bytes < kRecordHeader + kind.bytes || bytes % 8 != 0)
      fail("found a record of kind " + std::to_string(number) + " (" + kind.name + ") with " + std::to_string(bytes) +
           " bytes; expected a multiple of 8, at least " + std::to_string(kRecordHeader + kind.bytes) + ".");
    std::array<char, 128> fields{};
    if (source_.read(fields.data(), kind.bytes) < kind.bytes) return false;
    std::uint64_t rest = bytes - kRecordHeader - kind.bytes;
    if (number == kString) {
      if (!string(InjectFields(fields.data()), rest)) return false;
    } else if (kind.store != nullptr) {
      (this->*kind.store)(InjectFields(fields.data()));
    } else {
      ++records_.counts.unknown_kinds;
    }
    if (!skip(rest)) return false;
    ++records_.counts.records;
    at_ += bytes;
    return true;
  }

  bool string(InjectFields f, std::uint64_t& rest) {
    const std::uint32_t id = f.u32(), length = f.u32();
    if (id != names_.size())
      fail("found string " + std::to_string(id) + "; expected " + std::to_string(names_.size()) + ", they count up.");
    if (length > rest || length > kLongestName)
      fail("found a string of " + std::to_string(length) + " bytes in a record with room for " + std::to_string(rest) +
           "; expected at most 1 MiB.");
    text_.resize(length);
    if (source_.read(text_.data(), length) < length) return false;
    rest -= length;
    make_presentable(text_);  // the library cuts long names, perhaps within a character
    names_.push_back(length == 0 ? 0 : records_.strings.intern(text_));
    return true;
  }

  // --- values ---
  StringId name(std::uint32_t number) const {
    if (number >= names_.size())
      fail("found the name " + std::to_string(number) + ", which no string record before it has.");
    return names_[number];
  }

  std::int64_t time(std::uint64_t ns) const {
    if (ns > std::uint64_t{1} << 62) fail("found the time " + std::to_string(ns) + " ns; expected less than 2^62.");
    return static_cast<std::int64_t>(ns);
  }

  Bytes size(std::uint64_t bytes) const {
    if (bytes > std::uint64_t{1} << 60)
      fail("found a size of " + std::to_string(bytes) + " bytes; expected at most 2^60.");
    return static_cast<Bytes>(bytes);
  }

  template <class Record>
  Record& add(std::vector<Record>& list) const {
    if (list.size() >= kMostRecordsOfKind) fail("found more than 4 billion records of one kind.");
    return list.emplace_back();
  }

  static void sum(std::uint64_t& to, std::uint64_t value) { to = value > UINT64_MAX - to ? UINT64_MAX : to + value; }

  // --- records ---
  void nothing(InjectFields) {}

  void process(InjectFields f) {
    records_.process = f.u32();
    records_.executable = name(f.u32());
    records_.command_line = name(f.u32());
    records_.driver_version = static_cast<std::int32_t>(f.u32());
    records_.runtime_version = static_cast<std::int32_t>(f.u32());
    records_.cupti_version = f.u32();
  }

  void device(InjectFields f) {
    CuptiDevice device;
    device.memory = size(f.u64());
    f.skip(8);
    device.id = f.u32();
    device.name = name(f.u32());
    device.multiprocessors = f.u32();
    const std::uint64_t warps = f.u32(), lanes = f.u32();
    device.threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(warps * lanes, 1 << 20));
    device.blocks = f.u32();
    device.registers = f.u32();
    device.shared_memory = f.u32();
    f.skip(8);
    const std::uint32_t major = f.u32(), minor = f.u32();
    device.capability = std::min(major, 1000u) * 10 + std::min(minor, 9u);
    if (device_ids_.insert(device.id).second) add(records_.devices) = device;
  }

  void context(InjectFields f) {
    CuptiContext& context = add(records_.contexts);
    context.id = f.u32();
    context.device = f.u32();
  }

  void place(InjectFields& f, CuptiDeviceWork& work) {
    work.device = f.u32();
    work.context = f.u32();
    work.stream = f.u32();
    work.correlation = f.u32();
  }

  CuptiDeviceWork& work(CuptiWork kind, InjectFields& f) {
    CuptiDeviceWork& work = add(records_.work);
    work.work = kind;
    work.start = time(f.u64());
    work.end = time(f.u64());
    return work;
  }

  void kernel(InjectFields f) {
    CuptiDeviceWork& kernel = work(CuptiWork::kernel, f);
    f.skip(8);
    place(f, kernel);
    kernel.name = name(f.u32());
    kernel.graph = f.u32();
    kernel.blocks = 1;
    for (int i = 0; i < 3; ++i) kernel.blocks *= f.u32();
    std::uint64_t threads = 1;
    for (int i = 0; i < 3; ++i) threads = std::min<std::uint64_t>(threads * std::min(f.u32(), 1u << 20), 1 << 20);
    kernel.threads = static_cast<std::uint32_t>(threads);
    kernel.registers = f.u32();
    const std::uint64_t fixed = f.u32(), dynamic = f.u32();
    kernel.shared_memory = static_cast<std::uint32_t>(std::min<std::uint64_t>(fixed + dynamic, 1 << 30));
  }

  void copy(InjectFields f) {
    CuptiDeviceWork& copy = work(CuptiWork::copy, f);
    copy.bytes = size(f.u64());
    f.skip(8);
    place(f, copy);
    f.skip(8);
    copy.graph = f.u32();
    copy.copy_kind = f.u8();
    copy.source_kind = f.u8();
    copy.destination_kind = f.u8();
  }

  void memset(InjectFields f) {
    CuptiDeviceWork& memset = work(CuptiWork::memset, f);
    memset.bytes = size(f.u64());
    f.skip(8);
    place(f, memset);
    f.skip(4);
    memset.graph = f.u32();
    memset.destination_kind = static_cast<std::uint8_t>(std::min<std::uint16_t>(f.u16(), 255));
  }

  void graph(InjectFields f) {
    CuptiDeviceWork& graph = work(CuptiWork::graph, f);
    place(f, graph);
    graph.graph = f.u32();
  }

  void synchronization(InjectFields f) {
    CuptiSynchronization& sync = add(records_.synchronizations);
    sync.start = time(f.u64());
    sync.end = time(f.u64());
    sync.event_sync = f.u64();
    sync.type = f.u32();
    sync.correlation = f.u32();
    sync.context = f.u32();
    sync.stream = f.u32();
    sync.event = f.u32();
  }

  void event(InjectFields f) {
    CuptiEvent& event = add(records_.events);
    event.event_sync = f.u64();
    event.correlation = f.u32();
    event.context = f.u32();
    event.stream = f.u32();
    event.event = f.u32();
  }

  void memory(InjectFields f) {
    CuptiMemory& memory = add(records_.memory);
    memory.time = time(f.u64());
    memory.address = f.u64();
    memory.size = size(f.u64());
    if (memory.size > Bytes{1} << 44)
      fail("found an allocation of " + std::to_string(memory.size) + " bytes; expected at most 17.6 TB.");
    memory.from_pool = f.u64() != 0;
    memory.operation = f.u32();
    memory.kind = f.u32();
    memory.correlation = f.u32();
    memory.device = f.u32();
  }

  void pool(InjectFields) { ++records_.counts.pools; }

  void unified(InjectFields f) {
    f.skip(16);
    const std::uint64_t value = f.u64();
    f.skip(8);
    ++records_.counts.unified;
    switch (f.u32()) {
      case 1:
        return sum(records_.counts.to_device_bytes, value);
      case 2:
        return sum(records_.counts.to_host_bytes, value);
      case 3:
      case 4:
        return sum(records_.counts.faults, value);
      default:
        return;
    }
  }

  void call(InjectFields f) {
    CuptiCall& call = add(records_.calls);
    call.start = time(f.u64());
    call.end = time(f.u64());
    call.domain = f.u32();
    call.callback = f.u32();
    call.name = name(f.u32());
    call.thread = f.u32();
    call.correlation = f.u32();
  }

  void marker(InjectFields f) {
    NvtxMarker& marker = add(records_.markers);
    marker.time = time(f.u64());
    marker.id = f.u32();
    marker.flags = f.u32();
    marker.name = name(f.u32());
    marker.domain = name(f.u32());
    marker.thread = f.u32();
  }

  void overhead(InjectFields f) {
    const std::uint64_t start = f.u64(), end = f.u64();
    ++records_.counts.overheads;
    if (end > start) sum(records_.counts.overhead_ns, end - start);
  }

  void refused(InjectFields f) {
    f.skip(8);
    const StringId activity = name(f.u32()), reason = name(f.u32());
    if (records_.refusals.size() < 256) records_.refusals.push_back({activity, reason});
  }

  void losses(InjectFields f) {
    f.skip(8);
    records_.counts.dropped = f.u64();
    records_.counts.refused_buffers = f.u64();
    records_.counts.over_limit = f.u64();
    records_.counts.unwritten = f.u64();
    records_.counts.lost_names = f.u64();
  }

  void end(InjectFields f) {
    losses(f);
    records_.counts.ended = true;
  }

  ByteSource source_;
  CuptiRecords records_;
  std::uint64_t at_ = 0;            // where the record being read begins
  std::vector<StringId> names_{0};  // by number in the file
  std::unordered_set<std::uint32_t> device_ids_;
  std::string text_;
};

}  // namespace

bool is_mwi(std::string_view head) { return head.starts_with(kMagic); }

CuptiRecords read_inject_records(const std::filesystem::path& path) { return InjectReader(path).read(); }

}  // namespace memwall
