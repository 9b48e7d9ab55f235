#include "models/workload/import/tables/triosim_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "models/workload/import/bytes/file_text.h"
#include "models/workload/import/bytes/quote_for_message.h"
#include "models/workload/import/bytes/utf8.h"
#include "sim/csv.h"
#include "sim/error.h"
#include "sim/trace/op.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
using std::string_view;

constexpr std::size_t kMostText = std::size_t{1} << 30;
constexpr std::size_t kMostDimensions = 64;                 // as PyTorch has it
constexpr std::size_t kMostUsesEachWay = kMostUsesOfAnOp / 2;     // of an operator
constexpr std::int64_t kMostTensorBytes = std::int64_t{1} << 44;  // of one tensor
constexpr double kMostMicroseconds = 1e10;                  // of one operator: three hours
constexpr std::int64_t kMostId = (std::int64_t{1} << 62);
constexpr std::size_t kMostOperators = 20'000'000;
constexpr string_view kTraceColumn = "OperatorID", kTensorColumn = "TensorID";

// A comma-separated table as pandas writes it: cells with commas stand in double quotes.
class Table {
 public:
  explicit Table(const fs::path& path) : text_(read_file_text(path, kMostText)), reader_(text_, path.string()) {
    if (!reader_.next_filled()) fail("the file is empty; expected a line with the names of columns.");
    for (const string_view cell : reader_.cells()) names_.emplace_back(without_blanks(cell));
  }

  bool next() {
    if (!reader_.next_filled()) return false;
    if (reader_.cells().size() != names_.size())
      fail(fmt::format("{} columns; expected {}.", reader_.cells().size(), names_.size()));
    return true;
  }

  std::optional<std::size_t> find(string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    return found == names_.end() ? std::nullopt : std::optional<std::size_t>(found - names_.begin());
  }
  std::size_t column(string_view name) const {
    if (const auto found = find(name)) return *found;
    fail(fmt::format("there is no column \"{}\"; found {}.", name,
                     quote_for_message(fmt::format("{}", fmt::join(names_, ",")))));
  }

  string_view text(std::size_t column) const { return without_blanks(reader_[column]); }

  std::int64_t number(std::size_t column, std::int64_t most) const { return parse(text(column), column, most); }

  double real(std::size_t column, double most) const {
    const string_view cell = text(column);
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || !(value >= 0) || value > most)
      fail(fmt::format("{} is {}; expected a number from 0 to {}.", names_[column], quote_for_message(cell), most));
    return value;
  }

  // "[4; 6]" or "[128, 3, 224, 224]".
  template <class Add>
  void list(std::size_t column, std::int64_t most, std::size_t longest, const Add& add) const {
    string_view cell = text(column);
    if (cell.size() < 2 || cell.front() != '[' || cell.back() != ']')
      fail(fmt::format("{} is {}; expected a list in brackets.", names_[column], quote_for_message(cell)));
    cell = without_blanks(cell.substr(1, cell.size() - 2));
    for (std::size_t count = 0; !cell.empty(); ++count) {
      if (count >= longest) fail(fmt::format("{} has more than {} elements.", names_[column], longest));
      const std::size_t end = std::min(cell.find_first_of(";,"), cell.size());
      add(parse(without_blanks(cell.substr(0, end)), column, most));
      if (end + 1 == cell.size()) fail(fmt::format("{} ends in a separator.", names_[column]));
      cell.remove_prefix(std::min(end + 1, cell.size()));
    }
  }

  std::size_t line() const { return reader_.line(); }
  [[noreturn]] void fail(const std::string& sentence) const { reader_.fail(sentence); }

 private:
  std::int64_t parse(string_view cell, std::size_t column, std::int64_t most) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || value < 0 || value > most)
      fail(fmt::format("{} has {}; expected a whole number from 0 to {}.", names_[column], quote_for_message(cell),
                       most));
    return value;
  }

  std::string text_;
  CsvReader reader_;
  std::vector<std::string> names_;
};

bool names_a_parameter(string_view role) {
  for (const string_view name : {"weight", "bias", "running_mean", "running_var"})
    if (role == name) return true;
  return false;
}

// Product of sizes in elements, refused where the bytes are too many.
Bytes bytes_of_tensor(const Table& table, std::int64_t elements, std::int64_t element_bytes) {
  if (element_bytes > 0 && elements > kMostTensorBytes / element_bytes)
    table.fail(
        fmt::format("a tensor of {} elements of {} bytes; expected at most 2^44 bytes.", elements, element_bytes));
  return elements * element_bytes;
}

void read_tensors(TrioSimTables& tables, std::unordered_map<std::int64_t, std::uint32_t>& index_of) {
  Table table(tables.tensor);
  const std::size_t id = table.column(kTensorColumn), shape = table.column("TensorShape"),
                    elements = table.column("TensorNumElement"), element_bytes = table.column("TensorEachByte"),
                    role = table.column("TensorType");
  // The tracer spells it so; a later one may not.
  const std::size_t storage =
      table.find("TensorStorgeid") ? *table.find("TensorStorgeid") : table.column("TensorStorageid");
  while (table.next()) {
    TrioSimTensor tensor;
    tensor.id = table.number(id, kMostId);
    tensor.storage = table.number(storage, kMostId);
    table.list(shape, kMostTensorBytes, kMostDimensions, [&](std::int64_t extent) { tensor.shape.push_back(extent); });
    tensor.element_bytes = static_cast<std::uint32_t>(table.number(element_bytes, 64));
    tensor.bytes = bytes_of_tensor(table, table.number(elements, kMostTensorBytes), tensor.element_bytes);
    const auto [found, added] = index_of.try_emplace(tensor.id, static_cast<std::uint32_t>(tables.tensors.size()));
    if (added) {
      if (tables.tensors.size() >= 0x7fffffff) table.fail("more than 2 billion tensors.");
      tables.tensors.push_back(tensor);
    }
    TrioSimTensor& kept = tables.tensors[found->second];
    tables.contradicting_rows += kept.storage != tensor.storage || kept.bytes != tensor.bytes;
    const string_view plain = table.text(role).substr(0, table.text(role).find('='));  // "bias=None"
    kept.parameter |= names_a_parameter(plain);
    kept.counts |= plain == "target" || plain == "indices";
  }
}

void read_operators(TrioSimTables& tables, const std::unordered_map<std::int64_t, std::uint32_t>& index_of) {
  Table table(tables.trace);
  const std::size_t name = table.column("OperatorName"), inputs = table.column("Operator_input"),
                    outputs = table.column("Operator_output"), span = table.column("Operator_cudatime"),
                    busy = table.column("Operator_cudatimenooverlap");
  const auto gpu = table.find("gpuid"), stage = table.find("stage"), parallel = table.find("tpflag");
  while (table.next()) {
    if (tables.operators.size() >= kMostOperators) table.fail("more than 20 million operators.");
    TrioSimOperator& op = tables.operators.emplace_back();
    op.line = table.line();
    op.name = std::string(table.text(name).substr(0, 1024));
    std::replace(op.name.begin(), op.name.end(), '\0', '?');
    if (std::string copy; !check_utf8(op.name, copy)) op.name = "operator with a name that is no UTF-8";
    if (stage) op.stage = std::string(table.text(*stage).substr(0, 64));
    if (gpu) op.gpu = table.number(*gpu, 4095);
    op.tensor_parallel = parallel && table.text(*parallel) == "1";
    op.span = from_microseconds(table.real(span, kMostMicroseconds));
    op.busy = from_microseconds(table.real(busy, kMostMicroseconds));
    const auto add_to = [&](std::vector<std::uint32_t>& list) {
      return [&](std::int64_t id) {
        const auto found = index_of.find(id);
        if (found == index_of.end())
          table.fail(fmt::format("the operator uses tensor {}, which is not in {}.", id, tables.tensor.string()));
        list.push_back(found->second);
      };
    };
    table.list(inputs, kMostId, kMostUsesEachWay, add_to(op.inputs));
    table.list(outputs, kMostId, kMostUsesEachWay, add_to(op.outputs));
  }
  if (tables.operators.empty()) table.fail("there are no operators.");
}

bool is_tensor_table(const fs::path& path) {
  const std::string text = read_file_text(path, kMostText);
  return string_view(text).substr(0, std::min(text.find('\n'), text.size())).find(kTensorColumn) != std::string::npos;
}

// "tensor.csv" beside "trace.csv", "x-tensor.csv" beside "x-trace.csv".
fs::path beside(const fs::path& path, string_view own, string_view other) {
  std::string name = path.filename().string();
  const std::size_t at = name.rfind(own);
  if (at != std::string::npos) name.replace(at, own.size(), other);
  const fs::path found = path.parent_path() / (at == std::string::npos ? std::string(other) + ".csv" : name);
  if (std::error_code error; !fs::exists(found, error))
    throw InputError(fmt::format("{} is missing: the other table of the TrioSim workload {} was expected there.",
                                 found.string(), path.string()));
  return found;
}

}  // namespace

bool is_triosim_table(string_view text) {
  const string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  const auto has = [&](string_view column) { return line.find(column) != string_view::npos; };
  return (has(kTraceColumn) && has("Operator_cudatime")) || (has(kTensorColumn) && has("TensorNumElement"));
}

TrioSimTables read_triosim(const fs::path& path) {
  TrioSimTables tables;
  const bool tensors = is_tensor_table(path);
  tables.trace = tensors ? beside(path, "tensor", "trace") : path;
  tables.tensor = tensors ? path : beside(path, "trace", "tensor");
  std::unordered_map<std::int64_t, std::uint32_t> index_of;
  read_tensors(tables, index_of);
  read_operators(tables, index_of);
  return tables;
}

}  // namespace memwall
