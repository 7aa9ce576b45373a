"""check_proposal: all proposals pass, and planted errors are caught."""

from __future__ import annotations

import pytest

from skihmm.samplers import StepwiseGibbs
from skihmm.samplers._kernels import BeamProposal, BlockedProposal, StepwiseProposal
from skihmm.testing import check_proposal

pytestmark = pytest.mark.statistical

PROPOSALS = {
    "stepwise": (StepwiseProposal, 1),
    "stepwise, exact": (lambda: StepwiseProposal(exact=True), 1),
    "slice": (lambda: BeamProposal(cut=0.0), 1),
    "blocked": (BlockedProposal, 2),
    "blocked, crude messages": (lambda: BlockedProposal(cut=2.0), 3),
    "beam": (BeamProposal, 3),
}


def test_a_proposal_passes(global_random_seed):
    check_proposal(BeamProposal, block_size=2, random_state=global_random_seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", PROPOSALS)
def test_all_proposals_pass_for_many_seeds(name, seed):
    make_proposal, block_size = PROPOSALS[name]
    check_proposal(make_proposal, block_size=block_size, random_state=seed)


def test_misuse():
    with pytest.raises(AssertionError, match=r"StepwiseGibbs.* is no BlockProposal"):
        check_proposal(StepwiseGibbs)
    with pytest.raises(AssertionError, match="block_size=4; expected 1, 2 or 3"):
        check_proposal(BlockedProposal, block_size=4)
    with pytest.raises(ValueError, match="block_size=2 with StepwiseProposal"):
        check_proposal(StepwiseProposal, block_size=2)
