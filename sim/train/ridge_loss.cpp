#include "sim/train/ridge_loss.h"

#include <cmath>

namespace moelab {
namespace {

/// Sets the kernel's experts and gates. Returns whether the kernel covers the form.
bool set_form(const MixtureForm& form, kernels::RidgeMixture<double>& mixture) {
  switch (form.expert) {
    case MixtureForm::Expert::power:
      mixture.expert = kernels::RidgeExpert::power;
      break;
    case MixtureForm::Expert::relu:
      mixture.expert = kernels::RidgeExpert::relu;
      break;
    case MixtureForm::Expert::gelu:
      mixture.expert = kernels::RidgeExpert::gelu;
      break;
    case MixtureForm::Expert::sigmoid:
      mixture.expert = kernels::RidgeExpert::sigmoid;
      break;
  }
  mixture.power = form.power;
  switch (form.gate) {
    case MixtureForm::Gate::softmax:
      mixture.gate = kernels::RidgeGate::softmax;
      break;
    case MixtureForm::Gate::sigmoid:
      mixture.gate = kernels::RidgeGate::sigmoid;
      break;
    case MixtureForm::Gate::normalised_sigmoid:
      mixture.gate = kernels::RidgeGate::normalised_sigmoid;
      break;
  }
  mixture.selected = form.selected;
  if (form.router == MixtureForm::Router::two_level) return false;
  return form.router != MixtureForm::Router::squared_distance || form.gate == MixtureForm::Gate::softmax;
}

/// Whether the training gating drops no pair below a threshold.
bool keeps_every_pair(const GatingRule& gating) {
  const auto* const soft = gating.as<SoftGatingOptions>();
  return !soft || soft->skip_below.value_or(0) == 0;
}

}  // namespace

std::unique_ptr<RidgeLoss> RidgeLoss::make(const ModelOptions& options, const Network<double>& network,
                                           const TrainingSet<double>& data,
                                           const std::vector<std::size_t>& free) {
  const std::optional<MixtureForm> form = mixture_form(options);
  kernels::RidgeMixture<double> mixture;
  if (!form || !set_form(*form, mixture) || !has_gate_bias(options) ||
      !keeps_every_pair(options.gating.train))
    return nullptr;
  if (network.layout().target_dim() != 1 || options.experts + form->shared > kernels::kMostRidgeExperts)
    return nullptr;
  std::unique_ptr<RidgeLoss> loss(new RidgeLoss(*form, MeasurePlaces(options, network), data,
                                                network.layout().input_dim, free, network.parameter_size()));
  return loss;
}

RidgeLoss::RidgeLoss(const MixtureForm& form, MeasurePlaces places, const TrainingSet<double>& data, int dim,
                     const std::vector<std::size_t>& free, std::size_t buffer)
    : form_(form), places_(std::move(places)), dim_(dim), column_(buffer, -1) {
  for (std::size_t i = 0; i < free.size(); ++i) column_[free[i]] = static_cast<int>(i);
  set_form(form_, mixture_);
  mixture_.dim = dim_;
  mixture_.components = static_cast<int>(places_.bias().size());
  mixture_.shared = form_.shared;
  set_inputs(data);
  const int channels = 2 * mixture_.components + mixture_.shared;
  const std::size_t count = entries(channels, dim_ + 1);
  coefficients_.assign(count, 0.0);
  gradient_.assign(count, 0.0);
  products_.assign(count * count, 0.0);
  scratch_.assign(kernels::ridge_scratch(dim_, mixture_.components, mixture_.shared), 0.0);
  chart_.resize(static_cast<Eigen::Index>(count), static_cast<Eigen::Index>(free.size()));
  mixture_.router = coefficients_.data();
  mixture_.experts = coefficients_.data() + entries(mixture_.components, dim_ + 1);
  mixture_.scratch = scratch_.data();
}

void RidgeLoss::set_inputs(const TrainingSet<double>& data) {
  mixture_.stride = kernels::padded(data.rows);
  const std::size_t stride = size(static_cast<int>(mixture_.stride));
  x_.assign(size(dim_ + 1) * stride, 0.0);
  y_.assign(stride, 0.0);
  const bool is_cosine = form_.router == MixtureForm::Router::cosine;
  if (is_cosine) z_ = x_;
  for (std::size_t i = 0; i < size(data.rows); ++i) {
    const Eigen::Map<const Vector> x(data.x.data() + i * size(dim_), dim_);
    const double norm = x.norm() + form_.tau2, inverse = norm > 0 ? 1 / norm : 0;
    for (int c = 0; c < dim_; ++c) {
      x_[size(c) * stride + i] = x[c];
      if (is_cosine) z_[size(c) * stride + i] = x[c] * inverse;
    }
    x_[size(dim_) * stride + i] = 1;
    if (is_cosine) z_[size(dim_) * stride + i] = 1;
    y_[i] = data.y[i];
  }
  mixture_.x = x_.data();
  mixture_.z = is_cosine ? z_.data() : x_.data();
  mixture_.y = y_.data();
}

void RidgeLoss::add_to_chart(Eigen::Index coefficient, std::size_t place, double value) {
  if (const int column = column_[place]; column >= 0) chart_(coefficient, column) += value;
}

void RidgeLoss::read_router(std::span<const double> parameters, int component) {
  const std::size_t first = entries(component, dim_), bias = places_.bias()[size(component)];
  const auto place = [&](int c) { return places_.gate()[first + size(c)]; };
  const Eigen::Index row = static_cast<Eigen::Index>(component) * (dim_ + 1);
  double* const own = coefficients_.data() + row;
  Vector direction(dim_);
  for (int c = 0; c < dim_; ++c) direction[c] = parameters[place(c)];
  const double square = direction.squaredNorm(), norm = std::sqrt(square);
  own[dim_] = parameters[bias];
  double scale = 1;
  if (form_.router == MixtureForm::Router::cosine)
    scale = norm + form_.tau1 > 0 ? 1 / (norm + form_.tau1) : 0;
  if (form_.temperature) scale = std::exp(parameters[places_.log_scale().front()]);
  for (int c = 0; c < dim_; ++c) {
    own[c] = scale * direction[c];
    add_to_chart(row + c, place(c), scale);
    if (form_.router == MixtureForm::Router::squared_distance) {
      own[dim_] -= direction[c] * direction[c] / 2;
      add_to_chart(row + dim_, place(c), -direction[c]);
    }
    if (form_.router != MixtureForm::Router::cosine || norm == 0) continue;
    for (int other = 0; other < dim_; ++other)
      add_to_chart(row + c, place(other), -scale * scale * direction[c] * direction[other] / norm);
  }
  if (!form_.temperature) return add_to_chart(row + dim_, bias, 1);
  add_to_chart(row + dim_, bias, scale);
  own[dim_] *= scale;
  for (int c = 0; c <= dim_; ++c) add_to_chart(row + c, places_.log_scale().front(), own[c]);
}

void RidgeLoss::read_expert(std::span<const double> parameters, const std::vector<std::size_t>& slopes,
                            const std::vector<std::size_t>& intercepts, int expert, int place) {
  const Eigen::Index row = static_cast<Eigen::Index>(mixture_.components + expert) * (dim_ + 1);
  std::vector<std::size_t> own;
  for (int c = 0; c < dim_; ++c) own.push_back(slopes[entries(place, dim_) + size(c)]);
  own.push_back(intercepts[size(place)]);
  double* const coefficients = coefficients_.data() + row;
  double square = 0;
  for (int c = 0; c <= dim_; ++c) {
    coefficients[c] = parameters[own[size(c)]];
    square += coefficients[c] * coefficients[c];
  }
  const double inverse = form_.unit ? 1 / std::sqrt(square) : 1;
  for (int c = 0; c <= dim_; ++c) coefficients[c] *= inverse;
  for (int c = 0; c <= dim_; ++c) {
    add_to_chart(row + c, own[size(c)], inverse);
    for (int other = 0; form_.unit && other <= dim_; ++other)
      add_to_chart(row + c, own[size(other)], -inverse * coefficients[c] * coefficients[other]);
  }
}

void RidgeLoss::read(std::span<const double> parameters) {
  chart_.setZero();
  for (int j = 0; j < mixture_.components; ++j) {
    read_router(parameters, j);
    read_expert(parameters, places_.slope(), places_.intercept(), j, j);
  }
  for (int s = 0; s < mixture_.shared; ++s)
    read_expert(parameters, places_.shared_slope(), places_.shared_intercept(), mixture_.components + s, s);
}

double RidgeLoss::evaluate(std::span<const double> parameters, int rows, double* gradient) {
  read(parameters);
  mixture_.samples = rows;
  mixture_.products = nullptr;
  mixture_.gradient = gradient ? gradient_.data() : nullptr;
  const double loss = kernels::ridge_mixture(mixture_) / rows;
  if (!gradient) return loss;
  const Eigen::Map<const Vector> of_coefficients(gradient_.data(), chart_.rows());
  Eigen::Map<Vector>(gradient, chart_.cols()).noalias() =
      (2.0 / rows) * (chart_.transpose() * of_coefficients);
  return loss;
}

Matrix RidgeLoss::products(std::span<const double> parameters, int rows) {
  read(parameters);
  mixture_.samples = rows;
  mixture_.gradient = nullptr;
  mixture_.products = products_.data();
  kernels::ridge_mixture(mixture_);
  const Eigen::Map<const Matrix> lower(products_.data(), chart_.rows(), chart_.rows());
  const Matrix of_coefficients = lower.selfadjointView<Eigen::Lower>();
  return chart_.transpose() * of_coefficients * chart_ / rows;
}

}  // namespace moelab
