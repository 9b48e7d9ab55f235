#include "study/sweep/journal_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <charconv>

#include "sim/error.h"
#include "study/sweep/sweep_journal.h"

namespace memwall {
namespace {

// Of another layout: not read.
constexpr int kApplication = 0x6d777377, kVersion = 1;  // "mwsw"
constexpr int kBusyMilliseconds = 10'000;

}  // namespace

// Numbers as text that reads back as the same bits.
std::string fields_text(const PointRecord& record) {
  std::string text;
  for (const auto& [name, value] : record.fields) text += fmt::format("{}={}\n", name, value);
  return text;
}

std::optional<std::vector<std::pair<std::string, double>>> parse_fields(std::string_view text) {
  std::vector<std::pair<std::string, double>> fields;
  while (!text.empty()) {
    const std::size_t equals = text.find('='), end = text.find('\n');
    if (equals == std::string_view::npos || end == std::string_view::npos || equals > end) return std::nullopt;
    double value = 0;
    const auto read = std::from_chars(text.data() + equals + 1, text.data() + end, value);
    if (read.ec != std::errc() || read.ptr != text.data() + end) return std::nullopt;
    fields.emplace_back(text.substr(0, equals), value);
    text.remove_prefix(end + 1);
  }
  return fields;
}

JournalDatabase::JournalDatabase(const std::filesystem::path& path, Opening opening) {
  const int make = opening == Opening::or_make ? SQLITE_OPEN_CREATE : 0;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle_, SQLITE_OPEN_READWRITE | make | SQLITE_OPEN_FULLMUTEX, nullptr);
  if (code != SQLITE_OK) fail(path, "it cannot be opened");
  sqlite3_busy_timeout(handle_, kBusyMilliseconds);
  prepare(path);
  if (!run("PRAGMA journal_mode=WAL") || !run("PRAGMA synchronous=NORMAL")) fail(path, "it cannot be written");
}

JournalDatabase::~JournalDatabase() { sqlite3_close(handle_); }

bool JournalDatabase::run(const char* text) {
  return sqlite3_exec(handle_, text, nullptr, nullptr, nullptr) == SQLITE_OK;
}

int JournalDatabase::number(const char* text) {
  JournalStatement statement(*this, text);
  return statement && statement.step() == JournalStatement::Outcome::row ? static_cast<int>(statement.number(0)) : -1;
}

std::string JournalDatabase::message() const { return sqlite3_errmsg(handle_); }

void JournalDatabase::fail(const std::filesystem::path& path, const char* what) {
  const std::string why = handle_ == nullptr ? "no memory" : sqlite3_errmsg(handle_);
  sqlite3_close(handle_);
  handle_ = nullptr;
  throw InputError(
      fmt::format("{}: {} ({}); expected a journal of memwall sweep, or a place for one.", path.string(), what, why));
}

// Another program's file is left as it is.
void JournalDatabase::prepare(const std::filesystem::path& path) {
  const int tables = number("SELECT count(*) FROM sqlite_master");
  if (tables < 0) fail(path, "it is no SQLite file");
  if (tables > 0) return require_own(path);
  const std::string make = fmt::format(
      "PRAGMA application_id={}; PRAGMA user_version={};"
      "CREATE TABLE IF NOT EXISTS point(key TEXT PRIMARY KEY, scenario TEXT NOT NULL, has_all INTEGER NOT "
      "NULL, error TEXT NOT NULL, cause TEXT NOT NULL, fields TEXT NOT NULL) WITHOUT ROWID",
      kApplication, kVersion);
  if (!run("BEGIN IMMEDIATE") || !run(make.c_str()) || !run("COMMIT")) fail(path, "it cannot be written");
}

void JournalDatabase::require_own(const std::filesystem::path& path) {
  if (number("PRAGMA application_id") != kApplication || number("PRAGMA user_version") != kVersion)
    fail(path, "it is another program's database, or of another version of memwall");
}

JournalStatement::JournalStatement(const JournalDatabase& database, const char* text) {
  if (sqlite3_prepare_v2(database.handle(), text, -1, &statement_, nullptr) != SQLITE_OK) statement_ = nullptr;
}
JournalStatement::~JournalStatement() { sqlite3_finalize(statement_); }

void JournalStatement::bind(int at, const std::string& text) {
  sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}
void JournalStatement::bind(int at, std::int64_t number) { sqlite3_bind_int64(statement_, at, number); }

JournalStatement::Outcome JournalStatement::step() {
  const int code = sqlite3_step(statement_);
  return code == SQLITE_ROW ? Outcome::row : code == SQLITE_DONE ? Outcome::done : Outcome::failed;
}

void JournalStatement::reset() { sqlite3_reset(statement_); }

std::string JournalStatement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return data == nullptr ? "" : std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}
std::int64_t JournalStatement::number(int column) const { return sqlite3_column_int64(statement_, column); }

}  // namespace memwall
