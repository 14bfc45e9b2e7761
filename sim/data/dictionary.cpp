#include "sim/data/dictionary.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/data/cluster_means.h"

namespace moelab {
namespace {

/// The largest number of sets over which E[y | x] is summed. More sets would cost as much as training.
constexpr std::size_t kMostSets = 1000;

class Dictionary final : public Problem {
  /// One stream per ingredient: changing one leaves the others unchanged.
  enum ProblemStream : std::uint64_t { kAtoms = 0, kTargets = 1 };

 public:
  Dictionary(const DictionaryOptions& options, const Seeds& seeds)
      : rank_(options.rank),
        output_dim_(outputs_of(options.target)),
        noise_std_(options.noise_std),
        linear_(options.target.as<dictionary::LinearTarget>() != nullptr) {
    Engine engine = seeds.stream(Purpose::problem, kAtoms);
    atoms_ = draw_separated_means({.dim = options.dim,
                                   .mean_std = options.mean_std,
                                   .noise_std = noise_std_,
                                   .separation = options.separation},
                                  options.atoms, engine);
    draw_targets(seeds);
    sets_ = subsets_of(clusters(), rank_, kMostSets);
  }

  Layout layout() const override { return {.input_dim = dim(), .output_dim = output_dim_, .labels = rank_}; }
  int clusters() const override { return static_cast<int>(atoms_.rows()); }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    Dataset data;
    data.x = Matrix::Zero(range.count, dim());
    data.y = Matrix::Zero(range.count, output_dim_);
    data.cluster.reserve(size(range.count) * size(rank_));
    boost::random::normal_distribution<double> normal;
    for (int i = 0; i < range.count; ++i) {
      const std::vector<int> set = draw_set_of_atoms(engine);
      for (const int atom : set) {
        for (int j = 0; j < dim(); ++j) data.x(i, j) += atoms_(atom, j) + noise_std_ * normal(engine);
      }
      for (const int atom : set) add_answer(atom, 1.0, data.x, i, data.y);
      data.cluster.insert(data.cluster.end(), set.begin(), set.end());
    }
    return data;
  }

  /// E[y | x] = Σ_i Pr[i ∈ S | x] (W_i x or W_i μ_i), with Pr[S | x] ∝ exp(−‖x − Σ_{i∈S} μ_i‖² / (2 r σ²)).
  std::optional<Matrix> bayes_prediction(const Matrix& x) const override {
    if (sets_.empty()) return std::nullopt;
    const double variance = rank_ * noise_std_ * noise_std_;
    Matrix centres = Matrix::Zero(static_cast<Eigen::Index>(sets_.size()), dim());
    for (std::size_t s = 0; s < sets_.size(); ++s) {
      for (const int atom : sets_[s]) centres.row(static_cast<Eigen::Index>(s)) += atoms_.row(atom);
    }
    Matrix prediction = Matrix::Zero(x.rows(), output_dim_);
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      const Vector mass =
          posterior_of_distances((centres.rowwise() - x.row(i)).rowwise().squaredNorm(), variance);
      Vector share = Vector::Zero(clusters());
      for (std::size_t s = 0; s < sets_.size(); ++s) {
        for (const int atom : sets_[s]) share[atom] += mass[static_cast<Eigen::Index>(s)];
      }
      for (int atom = 0; atom < clusters(); ++atom) add_answer(atom, share[atom], x, i, prediction);
    }
    return prediction;
  }

 private:
  int dim() const { return static_cast<int>(atoms_.cols()); }

  /// W_i (o, d).
  Eigen::Map<const Matrix> slopes(int atom) const {
    return {slopes_.data() + static_cast<std::ptrdiff_t>(atom) * output_dim_ * dim(), output_dim_, dim()};
  }

  /// Adds share · W_atom x_i, or share · W_atom μ_atom, to row i of y.
  void add_answer(int atom, double share, const Matrix& x, Eigen::Index i, Matrix& y) const {
    if (linear_) {
      y.row(i) += share * (x.row(i) * slopes(atom).transpose());
    } else {
      y.row(i) += share * values_.row(atom);
    }
  }

  /// r different atoms, ascending, all sets equally likely. Each draw is a place among the remaining atoms.
  std::vector<int> draw_set_of_atoms(Engine& engine) const {
    std::vector<int> set;
    for (int left = clusters(); left > clusters() - rank_; --left) {
      int atom = draw_index(engine, left);
      auto place = set.begin();
      for (; place != set.end() && *place <= atom; ++place) ++atom;
      set.insert(place, atom);
    }
    return set;
  }

  void draw_targets(const Seeds& seeds) {
    Engine engine = seeds.stream(Purpose::problem, kTargets);
    slopes_ =
        draw_normals(engine, clusters(), output_dim_ * dim(), 1.0 / std::sqrt(static_cast<double>(dim())));
    values_.resize(clusters(), output_dim_);
    for (int atom = 0; atom < clusters(); ++atom) {
      values_.row(atom) = atoms_.row(atom) * slopes(atom).transpose();
    }
  }

  int rank_;
  int output_dim_;
  double noise_std_;
  bool linear_;
  Matrix atoms_;                        // μ (c, d)
  Matrix slopes_;                       // (c, o · d)
  Matrix values_;                       // (c, o), W_i μ_i
  std::vector<std::vector<int>> sets_;  // empty if there are too many
};

void check_selected_atoms(const DataOptions& data) {
  const DictionaryOptions& options = data.options().get<DictionaryOptions>();
  if (options.rank <= options.atoms) return;
  throw InvalidOption("data.rank",
                      fmt::format("got {}, needs at most data.atoms = {}", options.rank, options.atoms));
}

}  // namespace

const std::vector<TargetKind>& dictionary::Targets::table() {
  static const std::vector<TargetKind> kinds = {
      target_kind("linear", "y = (Σ_{i∈S} W_i) x, rows of W_i ~ N(0, I / dim)",
                  &dictionary::LinearTarget::dim),
      target_kind("constant", "y = Σ_{i∈S} W_i μ_i, rows of W_i ~ N(0, I / dim)",
                  &dictionary::ConstantTarget::dim)};
  return kinds;
}

void DictionaryOptions::bind(Fields& fields) {
  fields.required().add("atoms", atoms, between(1, 1e6),
                        "number of atoms c, the Gaussians that a sample may be made of");
  fields.required().add("dim", dim, between(1, 1e6), "dimensions d");
  fields.add("rank", rank, between(1, 1000), "different atoms r in a sample");
  fields.add("mean_std", mean_std, positive(), "atoms are N(0, mean_std² I)");
  fields.add("separation", separation, positive(),
             "required c: all atoms at least c · noise_std · √dim apart (drawn until it holds)");
  fields.add("noise_std", noise_std, at_least(0), "σ of every atom's Gaussian");
  fields.add("target", target, "what the atoms say of y");
}

GeneratorKind dictionary_generator() {
  GeneratorKind kind = {
      {"dictionary", "x = Σ_{i∈S} N(μ_i, σ² I), S a random set of r of c atoms (Dikkala et al. 2023, 3.6)",
       DictionaryOptions{}, DictionaryOptions{.atoms = 5, .dim = 4, .target = dictionary::LinearTarget{2}}},
      draw_as<Dictionary, DictionaryOptions>,
      check_selected_atoms};
  kind.has_labels = [](const AnyOptions& options) { return options.get<DictionaryOptions>().rank == 1; };
  kind.kept_numbers = [](const AnyOptions& options, const Layout& layout) -> double {
    const double width = layout.input_dim, outputs = layout.output_dim;
    return options.get<DictionaryOptions>().atoms * (width + outputs * (width + 1));
  };
  return kind;
}

}  // namespace moelab
