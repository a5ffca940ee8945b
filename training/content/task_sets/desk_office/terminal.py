"""Jobs in a terminal (xterm): count, filter, sort, pack and arrange files with the shell's own tools."""

import random
from typing import Any

from training.content.task_sets.desk_office.kinds import (
    CITIES,
    GOODS,
    HOME,
    PEOPLE,
    TOPICS,
    command_says,
    folder_holds,
    kind,
    word,
    words,
)
from training.content.task_sets.steps_and_evaluators import DONE, file_holds, setup_step, type_text
from training.content.task_sets.task_family import Problem, Split

FOLDER = f"{HOME}/work"


def open_terminal(**files: str) -> tuple[dict[str, Any], ...]:
    """Set-up steps: a terminal in a folder with these files, whose names have _ for their dot."""
    written = [
        setup_step("write_file", path=f"{FOLDER}/{name.replace('_', '.')}", content=text)
        for name, text in files.items()
    ]
    shell = f"cd {FOLDER} && exec xterm -T Terminal -fa Monospace -fs 11 -geometry 90x28+60+80"
    return (
        *written,
        setup_step("launch", command=shell, shell=True),
        setup_step("activate_window", window_name="Terminal"),
    )


def _sales(rng: random.Random, split: Split, number: int) -> list[str]:
    cities = words(rng, split, CITIES, 3)
    return [f"{rng.choice(cities)},{word(rng, split, GOODS)},{rng.randint(10, 99)}" for _ in range(number)]


def count_lines(rng: random.Random, split: Split) -> Problem:
    number, topic = rng.randint(23, 97), word(rng, split, TOPICS)
    lines = _sales(rng, split, number)
    return Problem(
        instruction=f"Count the lines of {topic}.csv in the terminal. Write the number, alone, to count.txt.",
        config=open_terminal(**{f"{topic}_csv": "\n".join(lines) + "\n"}),
        evaluator=file_holds(f"{FOLDER}/count.txt", str(number), wait_s=2.0),
        actions=(type_text(f"wc -l < {topic}.csv > count.txt\n"), DONE),
    )


def filter_lines(rng: random.Random, split: Split) -> Problem:
    lines = _sales(rng, split, 20)
    city = lines[0].split(",")[0]
    wanted = [line for line in lines if line.startswith(city)]
    return Problem(
        instruction=f"Write the lines of sales.csv that begin with {city} to {city.lower()}.csv, in order.",
        config=open_terminal(sales_csv="\n".join(lines) + "\n"),
        evaluator=file_holds(f"{FOLDER}/{city.lower()}.csv", "\n".join(wanted), wait_s=2.0),
        actions=(type_text(f"grep ^{city} sales.csv > {city.lower()}.csv\n"), DONE),
    )


def sort_names(rng: random.Random, split: Split) -> Problem:
    people = words(rng, split, PEOPLE, 4)
    names, topic = [*people, *rng.sample(people, 2)], word(rng, split, TOPICS)
    return Problem(
        instruction=f"Write the names in {topic}.txt to sorted.txt, sorted and each only once.",
        config=open_terminal(**{f"{topic}_txt": "\n".join(names) + "\n"}),
        evaluator=file_holds(f"{FOLDER}/sorted.txt", "\n".join(sorted(people)), wait_s=2.0),
        actions=(type_text(f"sort -u {topic}.txt > sorted.txt\n"), DONE),
    )


def make_folders(rng: random.Random, split: Split) -> Problem:
    outer, *inner = words(rng, split, TOPICS, 3)
    paths = [outer, *(f"{outer}/{name}" for name in inner)]
    return Problem(
        instruction=f'Make a folder "{outer}" here, and in it the folders "{inner[0]}" and "{inner[1]}".',
        config=open_terminal(readme_txt="Folders of this year.\n"),
        evaluator=folder_holds(FOLDER, ["readme.txt", *paths]),
        actions=(type_text(f"mkdir -p {outer}/{inner[0]} {outer}/{inner[1]}\n"), DONE),
    )


def pack(rng: random.Random, split: Split) -> Problem:
    one, two, archive = words(rng, split, TOPICS, 3)
    return Problem(
        instruction=f'Pack {one}.txt and {two}.txt into the archive "{archive}.tar.gz" here.',
        config=open_terminal(**{f"{one}_txt": "one\n", f"{two}_txt": "two\n"}),
        evaluator=command_says(
            f"cd {FOLDER} && tar -tzf {archive}.tar.gz 2>/dev/null | sort",
            "".join(f"{name}.txt\n" for name in sorted((one, two))),
        ),
        actions=(type_text(f"tar -czf {archive}.tar.gz {one}.txt {two}.txt\n"), DONE),
    )


def make_runnable(rng: random.Random, split: Split) -> Problem:
    topic, name = word(rng, split, TOPICS), word(rng, split, PEOPLE).split()[0]
    return Problem(
        instruction=f"Make {topic}.sh executable and run it. It writes its answer to result.txt.",
        config=open_terminal(**{f"{topic}_sh": f"#!/bin/sh\necho ready for {name} > result.txt\n"}),
        evaluator=command_says(
            f"cd {FOLDER} && test -x {topic}.sh && cat result.txt 2>/dev/null", f"ready for {name}\n"
        ),
        actions=(type_text(f"chmod +x {topic}.sh\n"), type_text(f"./{topic}.sh\n"), DONE),
    )


def sort_into_folders(rng: random.Random, split: Split) -> Problem:
    texts, tables = words(rng, split, TOPICS, 2), words(rng, split, GOODS, 2)
    one, two = (city.lower() for city in words(rng, split, CITIES, 2))
    files = {f"{name}_txt": "text\n" for name in texts} | {f"{name}_csv": "1,2\n" for name in tables}
    wanted = [one, two, *(f"{one}/{name}.txt" for name in texts)]
    wanted += [f"{two}/{name}.csv" for name in tables]
    return Problem(
        instruction=f'Make folders "{one}" and "{two}". Move .txt files into {one}, .csv files into {two}.',
        config=open_terminal(**files),
        evaluator=folder_holds(FOLDER, wanted),
        actions=(
            type_text(f"mkdir {one} {two}\n"),
            type_text(f"mv *.txt {one}\n"),
            type_text(f"mv *.csv {two}\n"),
            DONE,
        ),
    )


def total(rng: random.Random, split: Split) -> Problem:
    lines = _sales(rng, split, 12)
    city = lines[0].split(",")[0]
    amount = sum(int(line.split(",")[2]) for line in lines if line.startswith(city))
    program = f"awk -F, '$1==\"{city}\" {{s+=$3}} END {{print s}}' sales.csv > total.txt\n"
    return Problem(
        instruction=(
            f"The third column of sales.csv is an amount. Write the sum of those of {city} to total.txt."
        ),
        config=open_terminal(sales_csv="\n".join(lines) + "\n"),
        evaluator=file_holds(f"{FOLDER}/total.txt", str(amount), wait_s=2.0),
        actions=(type_text(program), DONE),
    )


KINDS = (
    kind("terminal/count", 1, count_lines),
    kind("terminal/filter", 1, filter_lines),
    kind("terminal/sort", 1, sort_names),
    kind("terminal/folders", 1, make_folders),
    kind("terminal/pack", 1, pack),
    kind("terminal/run", 1, make_runnable),
    kind("terminal/arrange", 2, sort_into_folders),
    kind("terminal/total", 2, total),
)
