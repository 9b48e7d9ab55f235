#include "models/workload/import/bytes/archive_source.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/workload/import/bytes/quote_for_message.h"
#include "sim/error.h"
#include "sim/files/input_file.h"

namespace memwall {
namespace {

using std::string_view;
constexpr std::size_t kBlock = 256 << 10;
constexpr std::size_t kMostListed = 20, kMostCompared = 1000;
constexpr std::uint64_t kMostMembers = 1'000'000;
// What is unpacked at most to see how many members there are; a larger one is taken for the only one until its end.
constexpr std::uint64_t kMostAhead = std::uint64_t{256} << 20;

// A plain name: no folder, and not what macOS keeps beside a file.
bool is_left_beside(string_view name) {
  const string_view base = name.substr(name.find_last_of('/') + 1);
  return base.starts_with("._") || base == ".DS_Store" || name.starts_with("__MACOSX/");
}

std::string shortened(string_view name) {
  constexpr std::size_t kLongest = 120;
  return name.size() <= kLongest ? std::string(name) : std::string(name.substr(0, kLongest)) + "...";
}

}  // namespace

ArchivePath split_archive_path(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return {path, ""};
  const std::string& text = path.native();
  for (std::size_t colon = text.rfind(':'); colon != std::string::npos && colon > 0;
       colon = text.rfind(':', colon - 1)) {
    if (colon + 1 == text.size()) continue;
    const std::filesystem::path file(text.substr(0, colon));
    const std::filesystem::file_status status = std::filesystem::status(file, error);
    if (std::filesystem::is_regular_file(status) || std::filesystem::is_fifo(status))
      return {file, text.substr(colon + 1)};
  }
  return {path, ""};
}

bool is_archive(string_view head) {
  constexpr std::size_t kTarMagic = 257;  // POSIX 1003.1, ustar
  return head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06") || head.starts_with("\x28\xb5\x2f\xfd") ||
         head.starts_with(string_view("\xfd"
                                      "7zXZ\0",
                                      6)) ||
         head.starts_with("BZh") || (head.size() > kTarMagic && head.substr(kTarMagic).starts_with("ustar"));
}

void ArchiveSource::Close::operator()(archive* a) const { archive_read_free(a); }

ArchiveSource::ArchiveSource(const ArchivePath& place) : place_(place) {
  if (place_.member.empty()) choose();
  archive_ = open();
  std::string name;
  std::vector<std::string> names;
  for (std::uint64_t count = 0; count < kMostMembers && next_member(archive_.get(), name); ++count) {
    if (name == place_.member) return;
    if (names.size() < kMostCompared) names.push_back(shortened(name));
  }
  const std::string nearest = nearest_name(shortened(place_.member), names);
  if (names.size() > kMostListed) names.resize(kMostListed);
  throw InputError(fmt::format("{}: found no file {} in the archive{}; it holds {}.", place_.file.string(),
                               quote_for_message(place_.member),
                               nearest.empty() ? "" : fmt::format(" (nearest: {})", quote_for_message(nearest)),
                               names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

ArchiveSource::~ArchiveSource() = default;

std::vector<std::string> ArchiveSource::members(const std::filesystem::path& file, std::size_t most) {
  const ArchiveSource source(file, Unopened{});
  const Handle handle = source.open();
  std::vector<std::string> names;
  std::string name;
  std::uint64_t unpacked = 0;
  while (source.next_member(handle.get(), name)) {
    if (archive_format(handle.get()) == ARCHIVE_FORMAT_RAW || names.size() == most) return {};
    names.push_back(name);
    while (source.skip_block(handle.get(), unpacked))
      if (const auto read = static_cast<std::uint64_t>(std::max<la_int64_t>(0, archive_filter_bytes(handle.get(), -1)));
          unpacked > kMostUnpacked && unpacked / kMostRatio > read)
        throw InputError(fmt::format(
            "{}: {} bytes unpack to more than {} MiB, over {} times as much; expected captures, which do not repeat "
            "themselves like that.",
            file.string(), read, unpacked >> 20, kMostRatio));
  }
  return names;
}

// One block of the present member; false at its end.
bool ArchiveSource::skip_block(archive* a, std::uint64_t& unpacked) const {
  const void* block = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  const int status = archive_read_data_block(a, &block, &size, &offset);
  if (status == ARCHIVE_EOF) return false;
  if (status < ARCHIVE_WARN) fail(a);
  unpacked += size;
  return true;
}

ArchiveSource::Handle ArchiveSource::open() const {
  Handle handle(archive_read_new());
  archive* a = handle.get();
  if (a == nullptr) throw std::bad_alloc();
  for (const auto support :
       {archive_read_support_filter_gzip, archive_read_support_filter_bzip2, archive_read_support_filter_xz,
        archive_read_support_filter_zstd, archive_read_support_format_tar, archive_read_support_format_zip,
        archive_read_support_format_raw})
    if (support(a) < ARCHIVE_WARN) fail(a);
  if (archive_read_open_filename(a, readable_path(place_.file).c_str(), kBlock) != ARCHIVE_OK) fail(a);
  return handle;
}

void ArchiveSource::fail(archive* a) const {
  const char* message = archive_error_string(a);
  throw InputError(fmt::format("{}, compressed byte {}: the archive cannot be read: {}.", place_.file.string(),
                               std::max<la_int64_t>(0, archive_filter_bytes(a, -1)),
                               message == nullptr ? "damaged data" : message));
}

bool ArchiveSource::next_member(archive* a, std::string& name) const {
  archive_entry* entry = nullptr;
  while (true) {
    const int status = archive_read_next_header(a, &entry);
    if (status == ARCHIVE_EOF) return false;
    if (status < ARCHIVE_WARN) fail(a);
    const char* path = archive_entry_pathname(entry);
    if (path == nullptr) path = archive_entry_pathname_utf8(entry);  // beyond what the locale can write
    if (path == nullptr) path = "unnamed";
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) continue;
    if (is_left_beside(path)) continue;
    if (archive_entry_is_encrypted(entry) != 0)
      throw InputError(fmt::format("{}: the member {} is encrypted; expected a plain archive.", place_.file.string(),
                                   quote_for_message(shortened(path))));
    name = path;
    return true;
  }
}

void ArchiveSource::choose() {
  const Handle handle = open();
  std::vector<std::string> names;
  std::uint64_t count = 0;
  std::string name;
  while (next_member(handle.get(), name)) {
    if (++count == 1) place_.member = name;
    if (archive_format(handle.get()) == ARCHIVE_FORMAT_RAW) return;  // compressed, but no archive
    if (names.size() < kMostListed) names.push_back(shortened(name));
    if (count >= kMostMembers) break;
    // Behind a large member are others only found by unpacking it: when it has been read.
    std::uint64_t ahead = 0;
    while (ahead <= kMostAhead && skip_block(handle.get(), ahead)) continue;
    if (ahead > kMostAhead) {
      if (count == 1) alone_ = false;
      break;
    }
  }
  if (count > 1) fail_choice(names, count);
  if (count == 0)
    throw InputError(fmt::format("{}: the archive holds no file; expected a capture in it.", place_.file.string()));
}

void ArchiveSource::fail_choice(const std::vector<std::string>& names, std::uint64_t count) const {
  throw InputError(fmt::format("{}: the archive holds {} files; expected one, or which: {}:{}. It holds {}{}.",
                               place_.file.string(), count, place_.file.string(), names.front(), fmt::join(names, ", "),
                               count > names.size() ? ", ..." : ""));
}

std::size_t ArchiveSource::read(char* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size && !ended_) {
    const la_ssize_t got = archive_read_data(archive_.get(), to + done, size - done);
    if (got < 0) fail(archive_.get());
    if (got == 0) {
      ended_ = true;
      require_alone();
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void ArchiveSource::require_alone() {
  std::string other;
  if (!alone_ && next_member(archive_.get(), other)) fail_choice({place_.member, shortened(other)}, 2);
}

std::uint64_t ArchiveSource::compressed() const {
  return static_cast<std::uint64_t>(std::max<la_int64_t>(0, archive_filter_bytes(archive_.get(), -1)));
}

}  // namespace memwall
