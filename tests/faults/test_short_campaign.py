"""A short fault campaign: `make faults` with a fixed seed and few faults. What it checks is in faults/checks.py."""

import pytest

from faults.campaign import Campaign
from faults.catalogue import chosen
from faults.cluster import Cluster

SEED = 7
SOME = ["kill-leader", "pause-leader", "leader-cut-from-followers", "session-expires"]


@pytest.mark.timeout(300)
def test_a_cluster_keeps_its_promises_through_a_death_a_freeze_a_cut_and_a_lost_session(tmp_path):
    campaign = Campaign(Cluster(tmp_path), SEED, rate=100)
    assert campaign.run(chosen(SOME), rounds=len(SOME)) == []
    assert set(campaign.figures.faults) == set(SOME)
    assert campaign.figures.acknowledged > 0
    assert campaign.figures.transactions[0] > 0
