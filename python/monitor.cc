// The log of normscope.Monitor as a run directory, which `normscope serve` shows while it grows.
#include <pybind11/pybind11.h>
#include <pybind11/stl/filesystem.h>

#include "bindings.h"
#include "normscope/provenance.h"
#include "normscope/record.h"
#include "record/json.h"

namespace py = pybind11;

namespace normscope::python {
namespace {

constexpr const char* kMonitor = "monitor";

class MonitorLog {
 public:
  MonitorLog(const std::filesystem::path& directory, const std::string& options)
      : directory_(directory), log_(begun(directory_, options) / "metrics.jsonl") {}

  void append(const std::string& lines) { log_.append(lines); }

 private:
  // A training that goes on adds to the lines of its earlier part.
  static const std::filesystem::path& begun(const RunDirectory& directory, const std::string& options) {
    if (directory.holds_run()) {
      read_config(directory.path(), kMonitor);
    } else {
      directory.write_config(kMonitor, provenance(0, 1), options);
    }
    return directory.path();
  }

  RunDirectory directory_;
  LineLog log_;
};

}  // namespace

void add_monitor(py::module_& module) {
  py::class_<MonitorLog>(module, "MonitorLog")
      .def(py::init<std::filesystem::path, std::string>(), py::arg("directory"), py::arg("options"))
      .def("append", &MonitorLog::append, py::arg("lines"), py::call_guard<py::gil_scoped_release>());
}

}  // namespace normscope::python
