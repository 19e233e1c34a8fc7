"""Variants of the documents' cells: partitions, other statements, settings and sessions.

P1 to P12 number the questions that partitions raise; the other ids name the cell they vary.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from interlock.lab.bodies import (
    INSERT_FROM_SELF,
    TRUNCATE,
    compact,
    delete,
    insert,
    merge,
    overwrite,
    overwrite_dynamically,
    overwrite_partition,
    truncate_partition,
    update,
)
from interlock.lab.cases import Case, case
from interlock.lab.example import EMPTY, PARTITIONED
from interlock.lab.model import Body, Class, Outcome

BOTH, FAIL = Outcome.BOTH, Outcome.FAIL
_delta = partial(Case, policy="maxcompute_delta")
_transactional = partial(Case, policy="maxcompute_transactional")
_partitioned = partial(_delta, example=PARTITIONED)


def _case(
    make: partial[Case], identifier: str, earlier: Body, later: Body, outcome: Outcome
) -> Case:
    return make(id=identifier, earlier=earlier, later=later, outcome=outcome)


_p1, _p2 = (10, "i", 1), (11, "k", 2)
_NEW_P1 = (200, "y", 1)

PARTITIONS = (
    _case(_partitioned, "P1", insert(_p1), insert(_p2), BOTH),
    _case(
        _partitioned,
        "P2",
        overwrite_partition(1, _NEW_P1),
        update(3, "U", "p = 2 AND id = 3"),
        BOTH,
    ),
    _case(_partitioned, "P3", overwrite_partition(1, _NEW_P1), update(3, "U"), FAIL),
    _case(_partitioned, "P4", insert(_p1), overwrite_partition(1, _NEW_P1), BOTH),
    _case(_partitioned, "P5", insert(_p1, _p2), overwrite_partition(1, _NEW_P1), BOTH),
    _case(_partitioned, "P6", insert((10, "i", 3)), overwrite(_NEW_P1), BOTH),
    _case(_partitioned, "P7", insert(_p2), overwrite_dynamically(_NEW_P1), BOTH),
    _case(_partitioned, "P7-reversed", overwrite_dynamically(_NEW_P1), insert(_p2), BOTH),
    _case(_partitioned, "P8", insert(_p1), overwrite_partition(1), BOTH),
    _case(_partitioned, "P8-dynamic", insert(_p1), overwrite_dynamically(), BOTH),
    _case(_partitioned, "P11", update(1, "U", "p = 1 AND id = 1"), insert(_p1, _p2), FAIL),
    _case(_partitioned, "P12", insert(_p1), truncate_partition(1), BOTH),
    _case(_partitioned, "P12-disjoint", insert(_p2), truncate_partition(1), BOTH),
)

STATEMENTS = (
    _case(_delta, "D1-truncate", TRUNCATE, TRUNCATE, BOTH),
    _case(_delta, "D2-truncate", TRUNCATE, insert((20, "j")), FAIL),
    _case(_delta, "D3-truncate", TRUNCATE, delete(2), FAIL),
    _case(_delta, "D6-truncate", insert((10, "i")), TRUNCATE, BOTH),
    _case(_delta, "D11-truncate", update(1, "U"), TRUNCATE, BOTH),
    _case(_delta, "D16-truncate", compact(Class.MIN), TRUNCATE, BOTH),
    _case(_delta, "D8-merge", insert((10, "i")), merge(2, "M"), FAIL),
    _case(_delta, "D13-disjoint-files", delete(3, leaves="no file"), update(1, "U"), FAIL),
    _case(_delta, "D17-reads-itself", compact(Class.MIN), INSERT_FROM_SELF, BOTH),
    _case(_transactional, "T6-reads-itself", insert((10, "i")), INSERT_FROM_SELF, BOTH),
    _case(_delta, "D8-matches-nothing", insert((10, "i")), delete(99), FAIL),
    _case(partial(_delta, example=EMPTY), "D6-truncate-empty", insert((10, "i")), TRUNCATE, BOTH),
    _case(partial(_delta, example=EMPTY), "D6-no-rows-empty", insert((10, "i")), overwrite(), BOTH),
    _case(
        partial(_partitioned, last_version=3),
        "P2-matches-nothing",
        overwrite_partition(1, _NEW_P1),
        delete(99, "p = 2 AND id = 99"),
        BOTH,
    ),
)

WITHOUT_DELETION_VECTORS = tuple(
    replace(case(cell), id=f"{cell}-no-deletion-vectors", deletion_vectors="off")
    for cell in ("D6", "D11", "D13", "D16", "T10")
)

TWO_SESSIONS = tuple(
    replace(case(cell), id=f"{cell}-two-sessions", sessions=2) for cell in ("D1", "D7", "T5")
)

ALL = PARTITIONS + STATEMENTS + WITHOUT_DELETION_VECTORS + TWO_SESSIONS
