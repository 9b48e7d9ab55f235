#include "models/workload/import/bytes/sqlite_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "models/workload/import/bytes/archive_source.h"
#include "models/workload/import/bytes/utf8.h"
#include "sim/error.h"
#include "sim/files/input_file.h"

namespace memwall {
namespace {

constexpr int kLongestValue = 16 << 20;  // bytes of one value or row: beyond it a file is hostile
constexpr std::size_t kLongestText = 64 << 10;
constexpr int kWorkStep = 1000;

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string first_bytes(const std::filesystem::path& path) {
  std::string head(kArchiveHead, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(in.gcount()));
  return head;
}

// A file's name as a URI: everything but the plainest characters as %xx.
std::string uri_of(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    const auto byte = static_cast<unsigned char>(c);
    uri += std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '-' || c == '_' ? std::string(1, c)
                                                                                   : fmt::format("%{:02x}", byte);
  }
  return uri + "?mode=ro&immutable=1";
}

// SQLite opens what has a name, and what came through a pipe has none: its content is handed over. Returns SQLite's
// code.
int take_content(sqlite3* database, const std::filesystem::path& file, std::uintmax_t bytes) {
  auto* const content = static_cast<unsigned char*>(sqlite3_malloc64(bytes));
  std::ifstream in(file, std::ios::binary);
  const auto length = static_cast<std::streamsize>(bytes);
  if (content == nullptr || !in.read(reinterpret_cast<char*>(content), length)) {
    sqlite3_free(content);
    return content == nullptr ? SQLITE_NOMEM : SQLITE_IOERR;
  }
  return sqlite3_deserialize(database, "main", content, length, length,
                             SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
}

// Only reading tables is allowed: what a schema may call for (functions, pragmas, ...) is not.
int authorize(void*, int action, const char*, const char*, const char*, const char*) {
  return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

void harden(sqlite3* database) {
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_limit(database, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(database, SQLITE_LIMIT_EXPR_DEPTH, 20);
  sqlite3_limit(database, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_exec(database, "PRAGMA cell_size_check=ON", nullptr, nullptr, nullptr);
  sqlite3_set_authorizer(database, authorize, nullptr);
}

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

}  // namespace

bool SqliteRow::has(std::size_t column) const {
  return places_[column] >= 0 && sqlite3_column_type(statement_, places_[column]) != SQLITE_NULL;
}

std::optional<std::int64_t> SqliteRow::number(std::size_t column) const {
  if (places_[column] < 0 || sqlite3_column_type(statement_, places_[column]) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_, places_[column]);
}

std::uint32_t SqliteRow::small(std::size_t column, std::uint32_t otherwise) const {
  const std::int64_t value = number(column, -1);
  return value < 0 || value >= 0xffffffff ? otherwise : static_cast<std::uint32_t>(value);
}

std::string_view SqliteRow::text(std::size_t column) const {
  text_.clear();
  if (places_[column] < 0 || sqlite3_column_type(statement_, places_[column]) != SQLITE_TEXT) return text_;
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, places_[column]));
  const auto bytes = static_cast<std::size_t>(sqlite3_column_bytes(statement_, places_[column]));
  if (data == nullptr) return text_;
  text_.assign(data, std::min(bytes, kLongestText));
  while (bytes > kLongestText && !text_.empty() && (text_.back() & 0x80) != 0) text_.pop_back();
  make_presentable(text_);
  return text_;
}

void SqliteDatabase::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

SqliteDatabase::SqliteDatabase(const std::filesystem::path& path, std::string_view expected)
    : path_(path), expected_(expected) {
  std::error_code error;
  const ArchivePath place = split_archive_path(path);
  const std::filesystem::path to_open = readable_path(place.file, "a database");
  const std::string head = first_bytes(to_open);
  if (!place.member.empty() || is_archive(head) || head.starts_with("\x1f\x8b"))
    throw InputError(
        fmt::format("{}: the database lies in an archive or is compressed, and SQLite reads it from a file "
                    "of its own alone; expected it unpacked.",
                    path.string()));
  const std::uintmax_t bytes = std::filesystem::file_size(to_open, error);
  if (error) throw InputError(path.string() + ": the file cannot be opened.");
  // A column takes a byte of a row at least, and one instruction to read; some tables are read twice.
  most_work_ = 1000 + bytes / 100;
  sqlite3* database = nullptr;
  const bool named = to_open == path;
  int code = named ? sqlite3_open_v2(uri_of(to_open).c_str(), &database,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_PRIVATECACHE, nullptr)
                   : sqlite3_open_v2(":memory:", &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE, nullptr);
  database_.reset(database);
  if (!named && code == SQLITE_OK) code = take_content(database, to_open, bytes);
  if (code != SQLITE_OK) fail("opening it");
  harden(database);
  sqlite3_progress_handler(database, kWorkStep, count_work, this);
  list_tables();
}

SqliteDatabase::~SqliteDatabase() = default;

int SqliteDatabase::count_work(void* self) {
  auto* database = static_cast<SqliteDatabase*>(self);
  return ++database->work_ > database->most_work_ ? 1 : 0;
}

void SqliteDatabase::fail(const std::string& where) const {
  const int code = database_ ? sqlite3_errcode(database_.get()) : SQLITE_NOMEM;
  const std::string why = code == SQLITE_INTERRUPT ? "its pages hold more rows than a file of this size can"
                                                   : (database_ ? sqlite3_errmsg(database_.get()) : "out of memory");
  throw InputError(
      fmt::format("{}: {}, SQLite found: {}; expected an undamaged {}.", path_.string(), where, why, expected_));
}

void SqliteDatabase::list_tables() {
  sqlite3_stmt* raw = nullptr;
  const char* const query = "SELECT name, sql FROM sqlite_master WHERE type = 'table'";
  if (sqlite3_prepare_v2(database_.get(), query, -1, &raw, nullptr) != SQLITE_OK) fail("listing its tables");
  const Statement statement(raw);
  const std::vector<int> places{0, 1};
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
    const SqliteRow row(raw, places);
    const std::string name(row.text(0));
    constexpr std::string_view kVirtual = "CREATE VIRTUAL";
    const std::string_view sql = row.text(1);
    if (sql.size() >= kVirtual.size() && same_name(sql.substr(0, kVirtual.size()), kVirtual)) continue;
    if (tables_.size() < 10'000) tables_.push_back(name);
  }
  if (code != SQLITE_DONE) fail("listing its tables");
}

std::vector<std::string> SqliteDatabase::tables() const { return tables_; }

bool SqliteDatabase::has(std::string_view table) const {
  return std::find(tables_.begin(), tables_.end(), table) != tables_.end();
}

std::uint64_t SqliteDatabase::read(std::string_view table, const std::vector<std::string_view>& columns,
                                   std::size_t required, const std::function<void(const SqliteRow&)>& row) const {
  if (!has(table)) return 0;
  const std::string where = fmt::format("reading table {}", table);
  sqlite3_stmt* raw = nullptr;
  // The name is one of ours: `has` compared it.
  const std::string query = fmt::format("SELECT * FROM \"{}\"", table);
  if (sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &raw, nullptr) != SQLITE_OK) fail(where);
  const Statement statement(raw);
  std::vector<int> places;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    int place = -1;
    for (int c = sqlite3_column_count(raw); c-- > 0;)
      if (const char* name = sqlite3_column_name(raw, c); name != nullptr && same_name(name, columns[i])) place = c;
    if (place < 0 && i < required)
      throw InputError(fmt::format("{}: table {} has no column {}.", path_.string(), table, columns[i]));
    places.push_back(place);
  }
  std::uint64_t rows = 0;
  int code = SQLITE_ROW;
  for (; (code = sqlite3_step(raw)) == SQLITE_ROW; ++rows) row(SqliteRow(raw, places));
  if (code != SQLITE_DONE) fail(fmt::format("{} at row {}", where, rows + 1));
  return rows;
}

}  // namespace memwall
