/// A model as named arrays, and back.

#include <algorithm>
#include <stdexcept>

#include "sim/model/array_places.h"
#include "sim/model/model.h"

namespace moelab {

template <class Real>
std::vector<NamedArray<Real>> arrays(const Model<Real>& model) {
  std::vector<NamedArray<Real>> all = model.network->arrays(model.parameters);
  const double* values = model.state.values.data();
  for (const StateArray& array : model.network->state_arrays()) {
    NamedArray<Real> named{array.name, array.shape, {}};
    for (std::int64_t i = 0; i < array.size(); ++i) named.values.push_back(static_cast<Real>(*values++));
    all.push_back(std::move(named));
  }
  all.push_back({"training_progress", {1}, {static_cast<Real>(model.state.progress)}});
  return all;
}

template <class Real>
void restore(Model<Real>& model, const std::vector<NamedArray<Real>>& arrays) {
  // All are found before one is written.
  const std::vector<NamedArray<Real>> own = moelab::arrays(model);
  std::vector<const NamedArray<Real>*> given;
  for (const NamedArray<Real>& array : own) {
    const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const NamedArray<Real>& other) {
      return other.name == array.name && other.shape == array.shape &&
             other.values.size() == array.values.size();
    });
    if (found == arrays.end()) {
      throw std::invalid_argument("restore: no array '" + array.name + "' of the model's shape");
    }
    given.push_back(&*found);
  }
  if (arrays.size() != own.size()) {
    throw std::invalid_argument("restore: " + std::to_string(arrays.size()) + " arrays, the model has " +
                                std::to_string(own.size()));
  }
  // The parameters, the state and its progress, in this order.
  auto next = given.begin();
  for (const auto& [name, places] : array_places(*model.network)) {
    const std::vector<Real>& values = (*next++)->values;
    for (std::size_t i = 0; i < places.size(); ++i) model.parameters[places[i]] = values[i];
  }
  auto state = model.state.values.begin();
  for (; next + 1 != given.end(); ++next) {
    state = std::copy((*next)->values.begin(), (*next)->values.end(), state);
  }
  model.state.progress = static_cast<double>((*next)->values.front());
}

template std::vector<NamedArray<float>> arrays(const Model<float>&);
template std::vector<NamedArray<double>> arrays(const Model<double>&);
template void restore(Model<float>&, const std::vector<NamedArray<float>>&);
template void restore(Model<double>&, const std::vector<NamedArray<double>>&);

}  // namespace moelab
