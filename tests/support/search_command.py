"""The command line of the searches that damage a file of each table and make calls."""

import argparse
import itertools
import json
import logging
import re

from tests.support import fault_search


def main(doc, search, *, kinds, group, options=()):
    """Run a search over tables by the arguments of the process, and print the findings, in groups. Return its status.

    Args:
        doc: The description of the command.
        search: Returns counts and findings of tables, with the arguments of the command.
        kinds: The kinds of damage.
        group: Returns what findings that are printed together have in common, as texts.
        options: Further options of the search, each a name and a help text.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", default="", help="only tables whose names match")
    parser.add_argument("--call", default="", help="only calls whose names match")
    parser.add_argument("--kind", action="append", choices=kinds, help="only this kind of damage; may be repeated")
    parser.add_argument("--sample", type=int, help="so many cases of each table, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shard", default="0/1", help="one share of the tables, such as 0/2")
    parser.add_argument("--seconds", type=float, help="end after this time")
    for name, text in options:
        parser.add_argument(f"--{name}", default="", help=text)
    chosen = vars(parser.parse_args())
    logging.disable()
    number, count = map(int, chosen.pop("shard").split("/"))
    pattern, only = chosen.pop("table"), chosen.pop("kind")
    names = [name for name in fault_search.tables() if re.search(pattern, name)][number::count]
    counts, findings = search(names, kinds=tuple(only or kinds), **chosen)
    for shared, found in itertools.groupby(sorted(findings, key=group), key=group):
        first, *rest = found
        print(f"{' | '.join(shared)} ({len(rest) + 1}x)\n    {first}")  # noqa: T201 - a command
    print(json.dumps(counts, indent=1))  # noqa: T201 - a command
    return 1 if findings else 0
