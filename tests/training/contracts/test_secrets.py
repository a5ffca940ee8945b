"""Secrets come from the environment or a private file; errors about them never tell the value."""

import pytest

from training.outgoing.secret_store import SecretError, read_secret, variable_of


def test_the_environment_goes_before_the_file(tmp_path, monkeypatch):
    file = tmp_path / "vendor-token"
    file.write_text("from-the-file\n")
    file.chmod(0o600)
    assert read_secret("vendor-token", tmp_path) == "from-the-file"
    monkeypatch.setenv("DESKHAND_SECRET_VENDOR_TOKEN", "from-the-environment")
    assert read_secret("vendor-token", tmp_path) == "from-the-environment"
    assert variable_of("a.b-c") == "DESKHAND_SECRET_A_B_C"


def test_a_missing_one_says_where_to_put_it(tmp_path):
    with pytest.raises(SecretError, match=r"set DESKHAND_SECRET_NOBODY or write it to .*/nobody"):
        read_secret("nobody", tmp_path)


def test_a_file_that_others_may_read_is_refused(tmp_path):
    (tmp_path / "open").write_text("s3cret")
    (tmp_path / "open").chmod(0o644)
    with pytest.raises(SecretError, match="chmod 600") as caught:
        read_secret("open", tmp_path)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "../django", "A", "with space", ".hidden", "django_secret_key", "key"])
def test_names_that_could_reach_elsewhere_are_refused(tmp_path, monkeypatch, name):
    monkeypatch.setenv("DESKHAND_SECRET_KEY", "signs sessions")
    with pytest.raises(SecretError, match="use small letters"):
        read_secret(name, tmp_path)


def test_what_no_header_can_carry_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("DESKHAND_SECRET_BAD", "two\nlines")
    with pytest.raises(SecretError, match="cannot be sent in a header"):
        read_secret("bad", tmp_path)
