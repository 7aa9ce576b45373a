// Blocks in a tree of restaurants, and the choice of the kernel that suits a law.
#pragma once
#include "_blocked.hpp"
#include "_tree_view.hpp"
#include "_dense_blocked.hpp"

namespace skihmm {

template <class Emission>
using TreeMessages = Blocked<Emission, TreeView, false>;
template <class Emission>
using TreeSlices = Blocked<Emission, TreeView, true>;

// The kernels that suit the law of a chain.  One dense kernel is for all emissions: the passes
// over the columns take most of its time.
inline Proposal *make_blocked(Chain &chain, double cut) {
    if (chain.transitions->has_runs())
        return new InlinedProposal<Emission, DenseBlocked>(*chain.emission, cut);
    if (chain.transitions->has_contexts()) return make_proposal<TreeMessages>(chain, cut);
    return make_proposal<BlockedMessages>(chain, cut);
}
inline Proposal *make_beam(Chain &chain, double cut) {
    if (chain.transitions->has_contexts()) return make_proposal<TreeSlices>(chain, cut);
    return make_proposal<BlockedSlices>(chain, cut);
}

}  // namespace skihmm
