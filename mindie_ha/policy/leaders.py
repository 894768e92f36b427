"""The leader of a training job: without it the others cannot go on, so its loss is the job's.

It is the pod of rank 0 whose replica type is not `worker`: Master (PyTorch), Chief (TensorFlow), Scheduler
(MindSpore, which shares rank 0 with Worker 0 where it has no NPUs), the first pod of a vcjob. A job whose
rank 0 is a worker has no leader. Source: rescheduling contract §2.5, S3-S5; design §5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mindie_ha.model.ledgers import Member
from mindie_ha.model.pods import Pod

REPLICA_TYPE = "training.kubeflow.org/replica-type"


def is_leader(pod: Pod) -> bool:
    """Whether `pod` is the leader of its job."""
    return pod.rank == 0 and pod.labels.get(REPLICA_TYPE, "") != "worker"


def leader_names(pods: Iterable[Pod], members: Iterable[Member]) -> frozenset[str]:
    """What the leader is called: by its pod, or by what is remembered of the complete job."""
    known = {pod.key.name for pod in pods if is_leader(pod)}
    return frozenset(known | {member.name for member in members if member.leads})


def twins(pods: Iterable[Pod]) -> str:
    """Which rank is there more than once, in words; "" for none. Leader and Worker 0 may share rank 0."""
    ranks = Counter((pod.rank, pod.labels.get(REPLICA_TYPE, "")) for pod in pods if pod.rank is not None)
    return next(
        (f"rank {rank} is there {count} times" for (rank, _), count in ranks.items() if count > 1), ""
    )
