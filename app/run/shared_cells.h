#pragma once

/// A session's part of cells that several processes share by leases.

#include <functional>

#include "app/run/leases.h"
#include "app/run/session.h"

namespace moelab {

/// Runs the cells that no other process is at or has recorded; the others count as interrupted. Of cells in
/// `lost` the arrays alone are missing: they are run though they are recorded. The arguments outlive the
/// answer.
CellRunner leased(Leases& leases, const CellRunner& runner, const Records& lost);

/// Waits until a cell whose record is missing can be taken, since the process that was at it is no longer, or
/// none is missing, or `must_stop` says so. The records then, with those of the other processes.
Records wait_for_others(const Scenario& scenario, const SessionOptions& options, Leases& leases,
                        const std::function<bool()>& must_stop);

}  // namespace moelab
