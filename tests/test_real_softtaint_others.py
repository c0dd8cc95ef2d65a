"""Others at the same nodes, an API server that cannot, another instance: on real servers."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import Any

from renderer.softtaint.lease import LAST_GOOD
from renderer.softtaint.taints import OVERUTILIZED
from tests import softtaint
from tests.softtaint import (
    GOOD,
    HELD,
    LEASE,
    NO_API,
    PARTLY,
    STOPPED,
    Tainter,
    ended,
)
from tests.softtaint_nodes import FAIR, OVER, foreign
from tests.softtaint_runs import (
    WANTED,
    Configured,
    Plain,
    behind,
    config,
    held,
    logged,
    on,
    plain,
    tainter,
    write,
)
from tests.testbed.fixtures import SERVERS
from tests.testbed.nodes import NODES, SCHEDULABLE, fleet, small
from tests.testbed.processes import until
from tests.testbed.proxy import Exchange, after, between, say, swallow

__all__ = ["config", "plain", "tainter"]

pytestmark = SERVERS


# Others at the same nodes


def test_what_others_do_meanwhile_is_kept(tainter: Tainter, config: Configured, plain: Plain) -> None:
    a, b = foreign("a"), foreign("b")
    write(tainter, "busy", [a])
    rule = on(
        "PATCH",
        "/nodes/busy",
        after(lambda: write(tainter, "busy", [b, a])),
        after(lambda: write(tainter, "busy", [b])),
    )
    run, _ = behind(tainter, rule, config())
    assert run.code == GOOD, run.text
    assert plain()["busy"] == [b, OVER, FAIR]
    assert run.summary["redone"] == 2


def test_a_node_that_somebody_writes_all_the_time_is_given_up(
    tainter: Tainter, config: Configured, plain: Plain
) -> None:
    def rule(exchange: Exchange, count: int) -> Any:
        hit = exchange.method == "PATCH" and "/nodes/busy?" in exchange.path
        return after(lambda: write(tainter, "busy", [foreign(f"k{count}")])) if hit else None

    run, proxy = behind(tainter, rule, config())
    assert (run.code, run.summary["writes"]) == (PARTLY, {"conflict": 1, "written": 2}), run.text
    assert proxy.seen[f"PATCH {NODES}/busy"] == 5
    assert plain()["busy"] == [foreign("k4")]
    assert plain()["busier"] == [OVER, FAIR]


def test_nodes_that_change_before_they_are_written(tainter: Tainter, config: Configured, plain: Plain) -> None:
    def delete() -> None:
        tainter.admin.delete(f"{NODES}/fair")

    def replace() -> None:
        tainter.admin.delete(f"{NODES}/busy")
        tainter.admin.create_at(NODES, small("busy"))
        write(tainter, "busy", [])  # only its uid tells it from the one before

    def mark() -> None:
        write(tainter, "busier", [foreign("ToBeDeletedByClusterAutoscaler")])

    happenings = {"fair": delete, "busy": replace, "busier": mark}

    def rule(exchange: Exchange, count: int) -> Any:
        name = exchange.path.partition("?")[0].rpartition("/")[2]
        return after(happenings[name]) if exchange.method == "PATCH" and name in happenings and not count else None

    try:
        run, _ = behind(tainter, rule, config())
        found = plain()
    finally:
        softtaint.remove(tainter.admin, f"{NODES}/busy")
    assert (run.code, run.summary["writes"]) == (GOOD, {"gone": 1, "left": 1, "replaced": 1}), run.text
    assert [taint for list_ in found.values() for taint in list_ if taint["key"] == OVERUTILIZED] == []


def test_a_node_that_leaves_the_selector_before_it_is_written_is_cleaned(
    tainter: Tainter, config: Configured, plain: Plain
) -> None:
    def leave() -> None:
        tainter.admin.merge(f"{NODES}/busy", {"metadata": {"labels": dict.fromkeys(SCHEDULABLE)}})
        write(tainter, "busy", [foreign(), FAIR])

    run, _ = behind(tainter, on("PATCH", "/nodes/busy", after(leave)), config())
    assert (run.code, plain()["busy"]) == (GOOD, [foreign()]), run.text


# An API server that cannot


def test_a_server_that_is_busy_broken_or_cut_off_is_asked_again(
    tainter: Tainter, config: Configured, plain: Plain
) -> None:
    actions: dict[str, list[Any]] = {
        f"PATCH {NODES}/fair": [say(429, Retry_After="2"), say(503), say(500)],
        f"PATCH {NODES}/busy": [Exchange.cut, swallow],
        f"PATCH {NODES}/busier": [say(409), say(504)],
        f"GET {NODES}": [Exchange.cut, say(429), say(502)],
        f"GET {LEASE}": [say(503)],
        f"POST {LEASE.rpartition('/')[0]}": [swallow],
    }
    times: dict[str, list[float]] = {}

    def rule(exchange: Exchange, count: int) -> Any:
        name = f"{exchange.method} {exchange.path.partition('?')[0]}"
        times.setdefault(name, []).append(time.monotonic())
        given = actions.get(name, [])
        return given[count] if count < len(given) else None

    run, proxy = behind(tainter, rule, config())
    assert (run.code, plain()) == (GOOD, WANTED), run.text
    assert run.summary["writes"] == {"written": 3}
    assert run.summary["changes"] == {"0->1": 1, "0->2": 2}  # also of the node whose answer was lost
    assert {line["from"] for line in logged(run, "taints changed")} == {0}
    first, second = times[f"PATCH {NODES}/fair"][:2]
    assert second - first >= 2
    assert proxy.seen[f"PATCH {NODES}/fair"] == 4
    assert run.summary["requests"]["PATCH 429"] == 1


def test_a_node_that_cannot_be_written_does_not_keep_the_others_waiting(
    tainter: Tainter, config: Configured, plain: Plain
) -> None:
    run, proxy = behind(tainter, on("PATCH", "/nodes/busy", *[say(500, "a webhook is broken")] * 9), config())
    assert (run.code, run.summary["writes"]) == (PARTLY, {"unreachable": 1, "written": 2}), run.text
    assert "a webhook is broken" in run.text
    assert proxy.seen[f"PATCH {NODES}/busy"] == 5
    assert plain()["busier"] == [OVER, FAIR]


def test_refused_writes_are_not_tried_again(tainter: Tainter, config: Configured, plain: Plain) -> None:
    run, proxy = behind(tainter, on("PATCH", "/nodes/busy", say(403, "not you")), config())
    assert (run.code, run.summary["writes"]) == (PARTLY, {"refused": 1, "written": 2}), run.text
    assert proxy.seen[f"PATCH {NODES}/busy"] == 1
    assert plain()["busy"] == []


def test_a_pass_that_could_write_nothing_was_not_good(tainter: Tainter, config: Configured, plain: Plain) -> None:
    def refuse(exchange: Exchange, _count: int) -> Any:
        return say(403, "not you") if exchange.method == "PATCH" and NODES in exchange.path else None

    def noted() -> bool:
        return LAST_GOOD in tainter.admin.get(LEASE)["metadata"].get("annotations", {})

    run, _ = behind(tainter, refuse, config())
    assert (run.code, run.summary["writes"], noted()) == (PARTLY, {"refused": 3}, False), run.text
    run, _ = behind(tainter, on("PATCH", "/nodes/busy", say(403, "not you")), config())
    assert (run.code, noted()) == (PARTLY, True), run.text
    assert plain()["busier"] == [OVER, FAIR]


def test_an_outage_during_the_writes_ends_them_soon(tainter: Tainter, config: Configured) -> None:
    def rule(exchange: Exchange, _count: int) -> Any:
        return say(503) if exchange.method == "PATCH" else None

    with fleet(tainter.admin, [small("idle"), *(small(f"out-{number:02}", taints=[OVER]) for number in range(60))]):
        run, proxy = behind(tainter, rule, config(mode="RemoveOnly"))
    assert run.code == PARTLY, run.text
    assert run.summary["writes"] == {"unreachable": 60}
    assert sum(count for name, count in proxy.seen.items() if name.startswith("PATCH")) < 60


def test_a_list_whose_pages_are_forgotten_begins_anew(tainter: Tainter, config: Configured, plain: Plain) -> None:
    """The proxy makes pages of two nodes, and forgets the second one of the first attempt."""

    def rule(exchange: Exchange, count: int) -> Any:
        if exchange.method == "GET" and exchange.path.startswith(f"{NODES}?"):
            exchange.path = exchange.path.replace("limit=500", "limit=2")
            return say(410, "too old") if count == 1 else None
        return None

    run, proxy = behind(tainter, rule, config())
    assert (run.code, plain()) == (GOOD, WANTED), run.text
    assert proxy.seen[f"GET {NODES}"] == 4

    def never(exchange: Exchange, _count: int) -> Any:
        listing = exchange.method == "GET" and exchange.path.startswith(f"{NODES}?")
        return say(410, "too old") if listing else None

    run, proxy = behind(tainter, never, config())
    assert (run.code, proxy.seen[f"GET {NODES}"]) == (NO_API, 3), run.text


def test_a_token_that_expired_is_read_anew(tainter: Tainter, config: Configured, plain: Plain) -> None:
    file = tainter.folder / "token"
    file.write_text("expired")

    def rule(exchange: Exchange, _count: int) -> Any:
        fresh = lambda: file.write_text(tainter.account.token)  # noqa: E731
        return after(fresh) if exchange.token == "Bearer expired" else None  # noqa: S105

    with between(tainter.account, tainter.folder, token_file=file) as (proxy, kubeconfig):
        proxy.rule = rule
        run = tainter.run(config(), f"--kubeconfig={kubeconfig}")
    assert (run.code, plain()) == (GOOD, WANTED), run.text
    assert run.summary["requests"]["GET 401"] == 1


def test_a_token_that_stays_refused_is_told(tainter: Tainter, config: Configured) -> None:
    with between(tainter.account, tainter.folder, token="wrong") as (proxy, kubeconfig):  # noqa: S106
        run = tainter.run(config(), f"--kubeconfig={kubeconfig}")
    assert (run.code, proxy.seen[f"GET {LEASE}"]) == (NO_API, 2), run.text
    assert "401" in run.summary["error"]


def test_no_server_at_all(tainter: Tainter, config: Configured) -> None:
    with between(tainter.account, tainter.folder) as (proxy, kubeconfig):
        proxy.close()
        run = tainter.run(config(), f"--kubeconfig={kubeconfig}")
    assert (run.code, run.summary["outcome"]) == (NO_API, "no_api"), run.text


def test_something_else_that_answers(tainter: Tainter, config: Configured) -> None:
    page = lambda exchange: exchange.answer(200, {"Content-Type": "text/html"}, b"<html>")  # noqa: E731
    run, _ = behind(tainter, on("GET", "/nodes", page), config())
    assert (run.code, "not an answer of Kubernetes" in run.summary["error"]) == (NO_API, True), run.text


# Several instances, and the end of one


def test_another_instance_is_left_to_work(tainter: Tainter, config: Configured, plain: Plain) -> None:
    assert tainter.run(config(mode="DryRun")).code == GOOD
    held(tainter, "another", seconds=5)
    run = tainter.run(config())
    assert (run.code, run.summary["error"]) == (HELD, "the Lease is held by another"), run.text
    assert plain()["busy"] == []
    assert tainter.run(config(), "--dry-run").code == GOOD
    held(tainter, "another", seconds=31)
    assert tainter.run(config()).code == GOOD
    assert plain() == WANTED


def test_two_instances_at_once_do_no_harm(tainter: Tainter, config: Configured, plain: Plain) -> None:
    runs = [tainter.start(config()) for _ in range(3)]
    codes = [ended(run).code for run in runs]
    assert GOOD in codes
    assert set(codes) <= {GOOD, HELD}
    assert plain() == WANTED


def test_a_signal_ends_a_run_between_two_writes(tainter: Tainter, config: Configured, plain: Plain) -> None:
    found: list[subprocess.Popen[str]] = []

    def interrupt() -> None:
        found[0].send_signal(signal.SIGTERM)
        time.sleep(0.5)

    with between(tainter.account, tainter.folder) as (proxy, kubeconfig):
        proxy.rule = on("GET", "/nodes", after(interrupt))
        found.append(tainter.start(config(), f"--kubeconfig={kubeconfig}"))
        run = ended(found[0])
    assert (run.code, run.summary["outcome"]) == (STOPPED, "stopped"), run.text
    assert plain()["busy"] == []
    assert not tainter.admin.get(LEASE)["spec"].get("holderIdentity")


def test_a_lease_that_is_lost_ends_the_pass(tainter: Tainter, config: Configured, plain: Plain) -> None:
    def steal() -> None:
        held(tainter, "thief", seconds=-20)
        until(lambda: proxy_seen() >= 2, "the renewal", seconds=20)
        time.sleep(0.3)

    def proxy_seen() -> int:
        return proxy.seen[f"GET {LEASE}"]

    with between(tainter.account, tainter.folder) as (proxy, kubeconfig):
        proxy.rule = on("GET", "/nodes", after(steal))
        run = tainter.run(config(), f"--kubeconfig={kubeconfig}")
    assert (run.code, run.summary["outcome"]) == (HELD, "held"), run.text
    assert plain()["busy"] == []
    assert tainter.admin.get(LEASE)["spec"]["holderIdentity"] == "thief"
