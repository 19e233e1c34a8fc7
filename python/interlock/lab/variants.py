"""Variants of the documents' cells: partitions, other statements, settings and sessions.

P1 to P12 number the questions that partitions raise, with the same jobs in the other order as
"reversed"; the other ids name the cell they vary.
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
    optimize,
    overwrite,
    overwrite_dynamically,
    overwrite_partition,
    truncate_partition,
    update,
)
from interlock.lab.cases import Case
from interlock.lab.cells import case
from interlock.lab.example import EMPTY, PARTITIONED, SCATTERED
from interlock.lab.model import Body, Class, Outcome

BOTH, FAIL = Outcome.BOTH, Outcome.FAIL
_delta = partial(Case, policy="maxcompute_delta")
_transactional = partial(Case, policy="maxcompute_transactional")
_partitioned = partial(_delta, example=PARTITIONED)
_scattered = partial(_delta, example=SCATTERED)


def _case(
    make: partial[Case], identifier: str, earlier: Body, later: Body, outcome: Outcome
) -> Case:
    return make(id=identifier, earlier=earlier, later=later, outcome=outcome)


_p1, _p2 = (10, "i", 1), (11, "k", 2)
_NEW_P1 = (200, "y", 1)

_UPDATE_P1 = update(1, "U", "p = 1 AND id = 1")

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
    _case(_partitioned, "P8", insert(_p1), overwrite_partition(1), BOTH),
    _case(_partitioned, "P8-dynamic", insert(_p1), overwrite_dynamically(), BOTH),
    _case(_scattered, "P9", insert(_p1), compact(Class.MAJ, partition=2), BOTH),
    _case(_scattered, "P9-whole-table", insert(_p1), compact(Class.MAJ), FAIL),
    _case(_scattered, "P10", compact(Class.MAJ, partition=1), _UPDATE_P1, BOTH),
    _case(
        _scattered,
        "P10-disjoint",
        compact(Class.MAJ, partition=1),
        update(3, "U", "p = 2 AND id = 3"),
        BOTH,
    ),
    _case(_partitioned, "P11", _UPDATE_P1, insert(_p1, _p2), FAIL),
    _case(_partitioned, "P12", insert(_p1), truncate_partition(1), BOTH),
    _case(_partitioned, "P12-disjoint", insert(_p2), truncate_partition(1), BOTH),
)

# Only cases whose two jobs are of different kinds have a reversed one. P3 and P6: an earlier job
# has touched the partitions of its files, even if it could have selected or replaced others.
_REVERSED_OUTCOMES = {
    **{"P2": BOTH, "P3": BOTH, "P4": FAIL, "P5": FAIL, "P6": BOTH, "P7": BOTH},
    **{"P8": FAIL, "P8-dynamic": BOTH, "P9": BOTH, "P9-whole-table": BOTH},
    **{"P10": FAIL, "P10-disjoint": BOTH, "P11": FAIL, "P12": FAIL, "P12-disjoint": BOTH},
}
REVERSED = tuple(
    replace(
        case,
        id=f"{case.id}-reversed",
        earlier=case.later,
        later=case.earlier,
        outcome=_REVERSED_OUTCOMES[case.id],
    )
    for case in PARTITIONS
    if case.id in _REVERSED_OUTCOMES
)

COMPACTIONS = (
    _case(_delta, "D9-optimize", insert((10, "i")), optimize(Class.MIN), BOTH),
    _case(_delta, "D14-optimize", update(1, "U"), optimize(Class.MIN), BOTH),
    _case(_delta, "D14-merge", merge(2, "M"), compact(Class.MIN), BOTH),
    _case(_delta, "D14-whole-file", delete(3, leaves="no file"), compact(Class.MIN), BOTH),
    _case(
        _delta,
        "D14-merge-smallfiles",
        update(1, "U"),
        compact(Class.MIN, statement="MERGE SMALLFILES"),
        BOTH,
    ),
    _case(_delta, "D16-optimize", optimize(Class.MIN), overwrite((200, "y")), BOTH),
    _case(_delta, "D17-optimize", optimize(Class.MIN), insert((20, "j")), BOTH),
    _case(_delta, "D18-optimize", optimize(Class.MIN), delete(2), BOTH),
    _case(_delta, "D18-update", compact(Class.MIN), update(1, "U"), BOTH),
    _case(_delta, "D18-merge", compact(Class.MIN), merge(2, "M"), BOTH),
    _case(_delta, "D18-whole-file", compact(Class.MIN), delete(3, leaves="no file"), BOTH),
    _case(
        _delta,
        "D18-merge-smallfiles",
        compact(Class.MIN, statement="MERGE SMALLFILES"),
        delete(2),
        BOTH,
    ),
    _case(_delta, "D19-optimize", optimize(Class.MIN), optimize(Class.MIN), FAIL),
    _case(_delta, "D20-optimize", optimize(Class.MIN), compact(Class.MAJ), BOTH),
    _case(_delta, "D23-update", compact(Class.MAJ), update(1, "U"), BOTH),
    _case(_delta, "D24-optimize", compact(Class.MAJ), optimize(Class.MIN), FAIL),
    _case(_transactional, "T8-optimize", insert((10, "i")), optimize(Class.SFM), FAIL),
    _case(
        _transactional,
        "T8-compact-major",
        insert((10, "i")),
        compact(Class.SFM, statement="COMPACT MAJOR"),
        FAIL,
    ),
    _case(_transactional, "T14-optimize", optimize(Class.SFM), insert((20, "j")), BOTH),
    _case(_transactional, "T15-optimize", optimize(Class.SFM), delete(2), FAIL),
    _case(_transactional, "T16-optimize", optimize(Class.SFM), optimize(Class.SFM), FAIL),
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
    for cell in ("D6", "D11", "D13", "D14", "D16", "D18", "D21", "D23", "T10")
)

TWO_SESSIONS = tuple(
    replace(case(cell), id=f"{cell}-two-sessions", sessions=2) for cell in ("D1", "D7", "D18", "T5")
)

ALL = PARTITIONS + REVERSED + COMPACTIONS + STATEMENTS + WITHOUT_DELETION_VECTORS + TWO_SESSIONS
