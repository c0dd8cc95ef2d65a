"""One file for each subcommand: plain values in, exit code out."""

from __future__ import annotations

from importlib import import_module

import click

from renderer import __version__
from renderer.words import did_you_mean

COMMANDS = {
    "render": "Write the overlays that the policies ask for.",
    "check": "Check policies, and that the overlays are what they render; writes nothing.",
    "build": "Run kustomize on the overlays and prove what each patch changes.",
    "test": "Run promtool on the rules of every cluster, and the unit tests that policies name.",
    "schema": "Print the JSON Schema of a kind, or write those of all.",
    "version": "Print the version.",
}

_EPILOG = """\b
Exit codes: 0 clean; 1 errors in the policies (with --strict also warnings) or differences; 2 could not run; 3 a bug.
Start with a Cluster and a policy under policies/, then run: kubevirt-policy render"""


class _Lazy(click.Group):
    """Imports a command only when it runs; help needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"renderer.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            known = did_you_mean(args[0], COMMANDS) or f"Known are {', '.join(COMMANDS)}."
            ctx.fail(f"No such command {args[0]}. {known}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Lazy,
    epilog=_EPILOG,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "KUBEVIRT_POLICY",
        "max_content_width": 110,
    },
)
@click.version_option(__version__, message="kubevirt-policy %(version)s")
def cli() -> None:
    """Turn short policies for KubeVirt and OpenShift Virtualization clusters into kustomize overlays for GitOps."""
