#include "study/python/binding/python_error.h"

#include <exception>
#include <new>

#include "sim/error.h"
#include "study/python/binding/interruption.h"

namespace memwall {
namespace {

namespace py = pybind11;

void raise_error(const char* sentence, const char* cause) {
  const py::object type = py::module_::import("memwall.errors").attr("Error");
  PyErr_SetObject(type.ptr(), type(sentence, cause).ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Interrupted&) {  // Python's error is set
  } catch (const UsageError& error) {
    raise_error(error.what(), "usage");
  } catch (const InputError& error) {
    raise_error(error.what(), "input");
  } catch (const InfeasibleError& error) {
    raise_error(error.what(), "infeasible");
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, "memory of this computer is exhausted.");
  }
}

}  // namespace

void translate_errors(const py::module_&) { py::register_local_exception_translator(translate); }

}  // namespace memwall
