#include <stdexcept>
#include <system_error>

#include "app/scenario/errors.h"
#include "app/store/provenance.h"
#include "bindings/bindings.h"
#include "sim/base/error.h"

namespace moelab::python {
namespace {

/// Translates C++ errors to Python exceptions:
///   InvalidOption                           moelab.UserError(path, message, errors)
///   EnvironmentError, std::system_error     OSError
///   std::length_error                       MemoryError
void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const InvalidOption& error) {
    const nb::object type = nb::module_::import_("moelab.errors").attr("UserError");
    Json all = Json::array();
    for (const ScenarioError& one : errors_of(error)) {
      // Messages quote what files hold, which need not be text.
      ScenarioError visible = UserError(visible_text(one.path()), visible_text(one.message()));
      visible.line = one.line;
      visible.column = one.column;
      all.push_back(error_json(visible));
    }
    const nb::object errors = nb::module_::import_("json").attr("loads")(json_text(all));
    const nb::object path = nb::cast(visible_text(error.path()));
    const nb::object message = nb::cast(visible_text(error.message()));
    PyErr_SetObject(type.ptr(), nb::make_tuple(path, message, errors).ptr());
  } catch (const EnvironmentError& error) {
    PyErr_SetString(PyExc_OSError, error.what());
  } catch (const std::system_error& error) {  // from files, streams and threads
    PyErr_SetString(PyExc_OSError, error.what());
  } catch (const std::length_error&) {
    PyErr_NoMemory();
  }
}

}  // namespace

Scenario GivenScenario::load(const std::vector<std::string>& settings) const {
  Scenario scenario = file.empty() ? expand_scenario(parse_json(document, "scenario"), profile, settings)
                                   : load_scenario(file, profile, settings);
  refuse_python_routers(scenario);
  return scenario;
}

}  // namespace moelab::python

NB_MODULE(_core, module) {
  using namespace moelab::python;
  nb::register_exception_translator(translate);
  add_python_router_kind();
  module.doc() = "The compiled part of moelab; the package's own functions are the interface.";
  module.def("version", moelab::program_version, "The program's version.");
  bind_documents(module);
  bind_arrays(module);
  bind_runs(module);
  bind_training(module);
}
