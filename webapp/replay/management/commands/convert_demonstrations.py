"""A published set of demonstrations as a file that the import of replay entries takes."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.replay.demonstration_sources.convert import convert
from webapp.replay.demonstration_sources.mapping import SHIPPED, MappingError, read_mapping

MAX_SHOWN = 20


class Command(BaseCommand):
    help = (
        "Write the demonstrations in FOLDER as JSON lines, pictures inside. Upload the file on the page of "
        "replay imports, with unknown tasks allowed: they come in as demonstrations only."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("output", type=Path)
        parser.add_argument(
            "--mapping", required=True, help=f"{', '.join(SHIPPED)}, or a YAML file written like them"
        )
        parser.add_argument("--limit", type=int, help="episodes to write at most")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            mapping = read_mapping(options["mapping"])
        except MappingError as error:
            raise CommandError(str(error)) from error
        num_written, num_left_out, problems = 0, 0, []
        with options["output"].open("w", encoding="utf-8") as output:
            for found in convert(options["folder"], mapping):
                if found.line is not None:
                    output.write(json.dumps(found.line, ensure_ascii=False) + "\n")
                    num_written += 1
                elif found.problem:
                    problems.append(f"{found.where}: {found.problem}")
                else:
                    num_left_out += 1
                if num_written == options["limit"]:
                    break
        for problem in problems[:MAX_SHOWN]:
            self.stderr.write(problem)
        if num_written + num_left_out + len(problems) == 0:
            raise CommandError(f"{options['folder']}: no file is named {mapping.episodes}")
        self.stdout.write(
            f"{num_written} demonstrations in {options['output']}; {num_left_out} left out by the mapping's "
            f"keep, {len(problems)} bad"
        )
