#pragma once

/// A router with what it needs to be called, and the attention that others read.

#include <limits>
#include <memory>
#include <vector>

#include "sim/model/blocks/attention.h"
#include "sim/model/router/router.h"

namespace moelab {

/// What an attention block of `heads` heads computes for rows (n·s, d).
inline AttentionState<double> attention_of(const std::vector<double>& rows, int dim, int tokens, int heads,
                                           const Start& start) {
  const std::unique_ptr<Block<double>> block = make_attention<double>({.heads = heads}, dim, tokens);
  AlignedVector<double> matrices(block->block_size());
  block->initialize(start, matrices.data());
  const View<const double> x = rows_of(rows.data(), static_cast<int>(rows.size()) / dim, dim);
  AlignedVector<double> outputs(entries(x.rows, kernels::padded(dim)));
  Pass<double> pass;
  pass.tokens = tokens;
  LayerSignals<double> signals;
  const std::unique_ptr<Scratch> scratch = block->make_scratch();
  block->forward(pass, x, {matrices.data()}, signals, *scratch,
                 kernels::padded_rows(outputs.data(), x.rows, dim));
  return *signals.attention;
}

/// A router with its parameters, state and scratch.
struct StartedRouter {
  StartedRouter(const RouterOptions& options, const RouterSetting& of, const Start& start)
      : setting(of), router(make_router<double>(options, of)), parameters(router->block_size()) {
    router->initialize(start, parameters.data());
    std::int64_t values = 0;
    for (const StateArray& array : router->state_arrays()) values += array.size();
    state.assign(size(values), std::numeric_limits<double>::quiet_NaN());
    router->start_state(start, state.data());
    scratch = router->make_scratch();
  }

  RouterSetting setting;
  std::unique_ptr<Router<double>> router;
  AlignedVector<double> parameters;
  std::vector<double> state;
  std::unique_ptr<Scratch> scratch;
};

}  // namespace moelab
