"""docker-compose.yml against the repository: what it names has to be there.

There is no container engine on every machine that runs these tests, so the files are read, not started;
`make check` also asks `docker compose config` where Docker is installed.
"""

import re
import shlex

import pytest
import yaml
from django.core.management import get_commands

from testing.private_installation import REPOSITORY
from webapp.lib.supervisor.process_specs import OPTIONAL

COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
DOCKERFILES = sorted((REPOSITORY / "deploy").glob("*.Dockerfile"))


def builds():
    return [(name, service["build"]) for name, service in SERVICES.items() if "build" in service]


OVERRIDES = {
    name: yaml.safe_load((REPOSITORY / "deploy" / name).read_text()) for name in ("gpu.yml", "machines.yml")
}


def default_of(text):
    """A text of the compose file where no variable is set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def instructions(dockerfile, word):
    text = dockerfile.read_text().replace("\\\n", " ")
    return [line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith(f"{word} ")]


def commands():
    """(service, argument list) of every command written in the compose file."""
    for name, service in SERVICES.items():
        command = service.get("command")
        if command:
            yield name, command if isinstance(command, list) else shlex.split(command)


def test_there_is_a_service_for_every_process_of_make_up():
    wanted = {"web", "dispatcher", "deskhost", "gpu-worker", "env-worker", "redis", "postgres"}
    assert wanted <= set(SERVICES)
    assert {name.removesuffix("-worker") for name in wanted} >= set(OPTIONAL)


def test_every_service_has_one_source_and_pinned_images_name_their_version():
    for name, service in SERVICES.items():
        if "build" not in service:
            assert re.search(r":\d", default_of(service["image"])), name


@pytest.mark.parametrize(("name", "build"), builds())
def test_the_dockerfile_and_the_stage_that_a_service_builds_exist(name, build):
    dockerfile = REPOSITORY / build["context"] / build["dockerfile"]
    assert dockerfile.is_file()
    if "target" in build:
        assert build["target"] in {stage.split(" AS ")[-1] for stage in instructions(dockerfile, "FROM")}


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda file: file.name)
def test_what_a_dockerfile_copies_is_in_the_repository(dockerfile):
    for copied in instructions(dockerfile, "COPY"):
        if not copied.startswith("--from="):
            *sources, _ = copied.split()
            assert [source for source in sources if not (REPOSITORY / source).exists()] == []


def test_services_wait_only_for_services_and_mount_only_declared_volumes():
    for name, service in SERVICES.items():
        assert set(service.get("depends_on", {})) <= set(SERVICES), name
        volumes = {mount.split(":")[0] for mount in service.get("volumes", [])}
        assert volumes <= set(COMPOSE["volumes"]), name


def test_commands_are_commands_of_the_product():
    for name, command in commands():
        if command[:2] == ["python", "manage.py"]:
            assert command[2] in get_commands(), name
        elif command[:2] == ["python", "-m"]:
            package = REPOSITORY / command[2].replace(".", "/")
            assert package.with_suffix(".py").is_file() or (package / "__main__.py").is_file(), name


def test_no_password_has_a_default_and_every_variable_is_in_the_example():
    text = (REPOSITORY / "docker-compose.yml").read_text()
    example = (REPOSITORY / "deploy" / "example.env").read_text()
    used = dict(re.findall(r"\$\{(\w+)(:[?-][^}]*)?\}", text))
    assert set(used) == set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    assert {name for name, rest in used.items() if rest.startswith(":?")} == {
        name for name in used if "PASSWORD" in name or "SECRET" in name
    }


def test_only_the_web_container_is_reachable_and_only_from_this_machine_unless_asked():
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published.pop("env-server") == ["${DESKHAND_BIND:-127.0.0.1}:8100:8100"]  # asks for a token
    assert published == {"web": ["${DESKHAND_BIND:-127.0.0.1}:${DESKHAND_PORT:-8700}:8700"]}
    assert SERVICES["env-server"]["profiles"], "not started unless asked for"


@pytest.mark.parametrize("name", OVERRIDES)
def test_an_override_builds_a_stage_that_exists_for_a_service_that_exists(name):
    for service, changes in OVERRIDES[name]["services"].items():
        dockerfile = REPOSITORY / SERVICES[service]["build"]["dockerfile"]
        stages = {stage.split(" AS ")[-1] for stage in instructions(dockerfile, "FROM")}
        assert changes["build"]["target"] in stages
        assert changes["image"] != SERVICES[service]["image"], "one name must not stand for two images"


def test_every_service_that_stays_up_tells_whether_it_works():
    optional = {name for name, service in SERVICES.items() if service.get("profiles")}
    without = {name for name, service in SERVICES.items() if "healthcheck" not in service}
    assert without - optional == {"prepare"}


def test_up_wait_gives_each_service_a_minute_to_answer_first():
    for name, service in SERVICES.items():
        if check := service.get("healthcheck"):
            seconds = {key: int(str(check.get(key, "0s"))[:-1]) for key in ("interval", "start_period")}
            assert seconds["start_period"] + check.get("retries", 3) * seconds["interval"] >= 60, name


def test_no_service_lives_in_the_network_of_another():
    assert [name for name, service in SERVICES.items() if "network_mode" in service] == []
    policy = SERVICES["gpu-worker"]["environment"]
    assert policy["DESKHAND_POLICY_ADDRESS"] == SERVICES["gpu-worker"]["hostname"] == "gpu-worker"


def test_desktops_can_make_their_sandboxes_and_know_no_password():
    deskhost = SERVICES["deskhost"]
    assert set(deskhost["security_opt"]) == {
        "seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"
    }  # fmt: skip
    assert deskhost["env_file"] == []
    assert [name for name in deskhost["environment"] if "URL" in name or "SECRET" in name] == []


def test_what_env_names_reaches_the_other_containers():
    for name, service in SERVICES.items():
        if "build" in service and name != "deskhost":
            assert service["env_file"] == [{"path": ".env", "required": False}], name
