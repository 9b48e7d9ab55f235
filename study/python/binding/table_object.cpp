#include "study/python/binding/table_object.h"

#include <pybind11/stl.h>

#include <memory>

#include "study/python/binding/arrow_stream.h"
#include "study/python/binding/column_table.h"

namespace memwall {
namespace {

namespace py = pybind11;

using SharedTable = std::shared_ptr<ColumnTable>;

// What Python releases if nobody has taken it.
template <class Exported>
void destroy(PyObject* capsule, const char* name) {
  auto* const exported = static_cast<Exported*>(PyCapsule_GetPointer(capsule, name));
  if (exported == nullptr) {
    PyErr_Clear();
    return;
  }
  if (exported->release != nullptr) exported->release(exported);
  delete exported;
}

py::object schema_capsule(const SharedTable& table) {
  auto schema = std::make_unique<ArrowSchema>();
  export_schema(*table, schema.get());
  return py::reinterpret_steal<py::object>(PyCapsule_New(
      schema.release(), "arrow_schema", [](PyObject* capsule) { destroy<ArrowSchema>(capsule, "arrow_schema"); }));
}

py::object stream_capsule(const SharedTable& table, const py::object&) {
  auto stream = std::make_unique<ArrowArrayStream>();
  export_stream(table, stream.get());
  return py::reinterpret_steal<py::object>(PyCapsule_New(stream.release(), "arrow_array_stream", [](PyObject* capsule) {
    destroy<ArrowArrayStream>(capsule, "arrow_array_stream");
  }));
}

py::object value_at(const ArrowColumn& column, std::size_t row) {
  if (!column.known[row]) return py::none();
  return std::visit(
      [row](const auto& values) -> py::object {
        using Values = std::decay_t<decltype(values)>;
        if constexpr (std::is_same_v<Values, IntegerValues>) return py::int_(values[row]);
        if constexpr (std::is_same_v<Values, NumberValues>) return py::float_(values[row]);
        if constexpr (std::is_same_v<Values, BitValues>) return py::bool_(values[row]);
        if constexpr (std::is_same_v<Values, TextValues>) {
          const std::string_view text = values[row];
          return py::reinterpret_steal<py::object>(
              PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
        }
      },
      column.values);
}

py::list values_of(const SharedTable& table, std::size_t column, std::size_t first, std::size_t last) {
  if (column >= table->columns.size()) throw py::index_error("there is no such column");
  last = std::min(last, table->rows());
  py::list values;
  for (std::size_t row = first; row < last; ++row) values.append(value_at(table->columns[column], row));
  return values;
}

// From Python's values: whole numbers, numbers, truths or texts; None is what is not known.
ArrowColumn column_of(const std::string& name, const py::list& values) {
  bool all_whole = true, all_numbers = true, all_truths = true;
  for (const py::handle value : values) {
    if (value.is_none()) continue;
    const bool is_truth = py::isinstance<py::bool_>(value);
    all_truths = all_truths && is_truth;
    all_whole = all_whole && !is_truth && py::isinstance<py::int_>(value);
    all_numbers = all_numbers && !is_truth && (py::isinstance<py::int_>(value) || py::isinstance<py::float_>(value));
  }
  ArrowColumn column = all_whole     ? integers(name)
                       : all_numbers ? numbers(name)
                       : all_truths  ? truths(name)
                                     : texts(name);
  for (const py::handle value : values) {
    if (value.is_none())
      column.add_unknown();
    else if (all_whole)
      column.add(py::cast<std::int64_t>(value));
    else if (all_numbers)
      column.add(py::cast<double>(value));
    else if (all_truths)
      column.add_bit(py::cast<bool>(value));
    else
      column.add(std::string_view(py::cast<std::string>(py::str(value))));
  }
  return column;
}

SharedTable table_of(const py::dict& columns) {
  auto table = std::make_shared<ColumnTable>();
  for (const auto& [name, values] : columns) {
    table->columns.push_back(column_of(py::cast<std::string>(name), py::cast<py::list>(values)));
    if (table->columns.back().known.size() != table->rows())
      throw py::value_error("The column " + table->columns.back().name + " is of another length than the first.");
  }
  return table;
}

}  // namespace

void add_columns(py::module_& module) {
  py::class_<ColumnTable, SharedTable>(module, "Columns")
      .def(py::init(&table_of))
      .def_property_readonly("names",
                             [](const ColumnTable& table) {
                               std::vector<std::string> names;
                               for (const ArrowColumn& column : table.columns) names.push_back(column.name);
                               return names;
                             })
      .def("__len__", &ColumnTable::rows)
      .def("values", &values_of)
      .def("__arrow_c_schema__", &schema_capsule)
      .def("__arrow_c_stream__", &stream_capsule, py::arg("requested_schema") = py::none());
}

}  // namespace memwall
