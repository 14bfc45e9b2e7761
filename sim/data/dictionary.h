#pragma once

/// Sums of draws from several Gaussians, with a target that adds up what each of them says
/// (Dikkala et al. 2023, sections 3.6 and C.3).

#include "sim/data/problem.h"

namespace moelab {

/// x = Σ_{i∈S} (μ_i + σ g_i),  S uniform among the sets of r of the c atoms, g_i ~ N(0, I_d): given S,
/// x ~ N(Σ μ_i, r σ² I). Atoms μ_i as the means of gaussian_mixture, apart on request. Targets with
/// W_i (o, d), rows ~ N(0, I / d): `linear` y = (Σ_{i∈S} W_i) x (C.3);  `constant` y = Σ_{i∈S} W_i μ_i (3.6),
/// a value per atom, added up. The same seed gives both forms the same atoms and W_i.
///
/// Dataset.cluster holds the r atoms of each sample in ascending order, (n, r). E[y | x] sums over all sets
/// and is offered up to 1000 of them (32 atoms and rank 2 make 496, 128 atoms 8128).
const Kind& dictionary_kind();

/// Throws UserError at "data.rank" unless r ≤ c.
void check_dictionary_rank(const Json& data);

std::unique_ptr<Problem> draw_dictionary(const Json& data, const Seeds& seeds);

}  // namespace moelab
