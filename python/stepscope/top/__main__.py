"""Started by `stepscope top` (src/cli/top.cpp), which resolves the run and the interpreter."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from stepscope.top import text
from stepscope.top.client import Api, Place, Refused, place_of_url

WRONG_USE = 2


def fail(message: str, hint: str = "") -> int:
    print(f"stepscope: {text.visible(message, text.UNICODE)}", file=sys.stderr)
    if hint:
        print(f"hint: {text.visible(hint, text.UNICODE)}", file=sys.stderr)
    return WRONG_USE


def utf8_locale() -> bool:
    """As the C library chooses, and as the card does: LC_ALL, else LC_CTYPE, else LANG."""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        if value := os.environ.get(name, ""):
            return "utf-8" in value.lower() or "utf8" in value.lower()
    return False


def terminal() -> bool:
    drawable = os.environ.get("TERM", "") not in ("", "dumb")
    return drawable and sys.stdin.isatty() and sys.stdout.isatty()


def print_status(api: Api) -> int:
    """Without a terminal: what `stepscope status` prints, once."""
    options = "?width=80" + ("" if utf8_locale() else "&ascii")
    try:
        print(asyncio.run(api.text("/status" + options)), end="")
    except Refused as error:
        return fail(f"{api.place}: {error.message}", error.hint)
    except (OSError, ValueError) as error:
        return fail(f"{api.place} does not answer: {error or type(error).__name__}",
                    "is the run, or stepscope serve, still going on?")  # fmt: skip
    return 0


def show(api: Api, layout: str) -> int:
    try:
        from stepscope.top.app import TopApp
    except ModuleNotFoundError as error:
        return fail(
            f"top needs the package {error.name}, which {sys.executable} does not have",
            f"{sys.executable} -m pip install 'stepscope[top]'; or: stepscope status --watch",
        )
    glyphs = text.UNICODE if utf8_locale() else text.ASCII
    app = TopApp(api, glyphs=glyphs, chosen_layout=layout)
    app.run(mouse=True)
    return app.return_code or 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="stepscope top")
    parser.add_argument("url", nargs="?", default="")
    parser.add_argument("--socket", default="")
    parser.add_argument("--token-file", default="")
    parser.add_argument("--ca", default="")
    parser.add_argument("--layout", default="auto")
    options = parser.parse_args()
    place = Place(socket=options.socket)
    if not options.socket:
        try:
            place = place_of_url(options.url, options.token_file, options.ca)
        except (ValueError, OSError) as error:
            return fail(str(error), "stepscope top 'http://127.0.0.1:PORT/?token=TOKEN'")
    api = Api(place)
    return show(api, options.layout) if terminal() else print_status(api)


if __name__ == "__main__":
    sys.exit(main())
