"""Label Studio in an environment of its own: installed, and run on loopback for a round."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from or_eval.sources.errors import DataError, shown

VARIABLE = "OR_EVAL_LABEL_STUDIO"
"""Names the folder of the environment, where it is not to be in the user's cache."""

REQUIREMENT = "label-studio>=1.23,<2"
_BEGUN = "or-eval-is-installing"


DATA = "label-studio"
"""Folder within a round's, of Label Studio's database, its log and the accounts."""

_ACCESS, _LOG = "access.json", "server.log"
_OWNER = "or-eval@localhost"
_START_LIMIT, _TIMEOUT = 300.0, 120.0
_SETTINGS = {
    "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
    "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK": "true",
    "LABEL_STUDIO_ALLOWED_HOSTS": "127.0.0.1,localhost",
    "LABEL_STUDIO_CORS_ALLOW_ALL_ORIGINS": "false",
    "LABEL_STUDIO_ENABLE_LOCAL_FILES_STORAGE": "false",
    # Label Studio reads plain HOST and DEBUG too, which may be set for something else.
    "LABEL_STUDIO_HOST": "",
    "LABEL_STUDIO_DEBUG": "false",
    # Nothing goes out: no usage data, no error reports, no look for a newer version.
    "LABEL_STUDIO_COLLECT_ANALYTICS": "false",
    "LABEL_STUDIO_LATEST_VERSION_CHECK": "false",
    "LABEL_STUDIO_SENTRY_DSN": "",
    "LABEL_STUDIO_FRONTEND_SENTRY_DSN": "",
}


def environment_folder() -> Path:
    """Give the folder that Label Studio's environment is in, or is to be made in."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "or-eval" / "label-studio"


def ensure_environment(folder: Path, say: Callable[[str], object]) -> Path:
    """Make the environment where it isn't there yet, and give the program that starts it.

    Raises:
        DataError: It can't be installed, or the folder holds something else.
    """
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    program = programs / "label-studio"
    # Left where an installation was stopped half-way, which is begun anew.
    begun = folder / _BEGUN
    if program.exists() and not begun.exists():
        return program
    if folder.exists() and any(folder.iterdir()) and not begun.exists():
        raise DataError(
            f"{folder}: contains something other than Label Studio; name another folder with "
            f"{VARIABLE}"
        )
    say(f"Installing Label Studio into {folder}: about 1 GB, some minutes, once.")
    folder.mkdir(parents=True, exist_ok=True)
    begun.touch()
    _run([sys.executable, "-m", "venv", str(folder)], folder)
    _run([str(programs / "python"), "-m", "pip", "install", "-q", REQUIREMENT], folder)
    begun.unlink()
    return program


def outside_environment() -> dict[str, str]:
    """Give environment variables without those that point into this Python's packages."""
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in ours}


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=outside_environment())
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
        raise DataError(
            f"{folder}: Label Studio can't be installed ({' '.join(last)}); see that pip reaches a "
            f"package index, or name an environment that has it with {VARIABLE}"
        )


class Account(BaseModel):
    """An annotator's account.

    Attributes:
        email: To log in with; it is on no mail server.
        password: Made up, since nobody else can reach the server.
        user: Its number in Label Studio; None before it is made.
        project: Number of the project with the annotator's tasks; None before it is made.
    """

    model_config = ConfigDict(extra="forbid")

    email: str
    password: str
    user: int | None = None
    project: int | None = None


class Access(BaseModel):
    """What is needed to reach a round's Label Studio.

    Attributes:
        url: Where it runs, or ran last.
        token: Of the account that set it up.
        password: Of that account.
        accounts: Annotators' accounts by name.
    """

    model_config = ConfigDict(extra="forbid")

    url: str = ""
    token: str
    password: str
    accounts: dict[str, Account]


def read_access(folder: Path) -> Access | None:
    """Give what is needed to reach a round's Label Studio, if it was ever started."""
    path = folder / DATA / _ACCESS
    try:
        return Access.model_validate_json(path.read_bytes()) if path.exists() else None
    except ValidationError as error:
        raise DataError(f"{path}: was changed by hand ({error.errors()[0]['msg']})") from None


def write_access(folder: Path, access: Access) -> None:
    """Keep it, for nobody but the user."""
    path = folder / DATA / _ACCESS
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(json.dumps(access.model_dump(), ensure_ascii=False, indent=1) + "\n")


def names_by_account(access: Access | None) -> dict[str, str]:
    """Give annotators' names by what exports know them by: an address or a number."""
    accounts = {} if access is None else access.accounts
    by_address = {account.email: name for name, account in accounts.items()}
    return by_address | {str(account.user): name for name, account in accounts.items()}


def new_access(annotators: list[str]) -> Access:
    """Make up accounts."""
    accounts = {
        # Addresses are ASCII: a name in other letters has its number in place of it.
        name: Account(
            email=f"{name.lower() if name.isascii() else f'annotator-{number}'}@localhost",
            password=secrets.token_urlsafe(9),
        )
        for number, name in enumerate(annotators, start=1)
    }
    return Access(
        token=secrets.token_hex(20), password=secrets.token_urlsafe(18), accounts=accounts
    )


class Studio:
    """A running Label Studio, as the account that set it up."""

    def __init__(self, access: Access) -> None:
        self.url = access.url
        self._http = httpx.Client(
            base_url=access.url,
            headers={"Authorization": f"Token {access.token}"},
            timeout=_TIMEOUT,
            trust_env=False,  # loopback needs no proxy
        )

    def answers(self, path: str) -> bool:
        """Tell whether it is there, and lets this account in."""
        try:
            return self._http.get(path, timeout=5).is_success
        except (httpx.TransportError, httpx.UnsupportedProtocol):
            return False

    def ask(self, method: str, path: str, data: Any = None) -> Any:
        """Send a request; give what is answered.

        Raises:
            DataError: It doesn't answer, or not with what was asked for.
        """
        try:
            said = self._http.request(method, path, json=data)
        except httpx.TransportError:
            raise DataError(
                f"Label Studio doesn't answer at {self.url}; start it with or-eval label start"
            ) from None
        if said.is_error:
            raise DataError(
                f"Label Studio: {method} {path} failed with {said.status_code} "
                f"({shown(said.text[:200])})"
            )
        return said.json()

    def sign_up(self, account: Account) -> None:
        """Send the form that a person would who was given the link."""
        invitation = self.ask("GET", "/api/invite")["invite_url"]
        with httpx.Client(base_url=self.url, timeout=_TIMEOUT, trust_env=False) as http:
            http.get(invitation).raise_for_status()
            form = {"email": account.email, "password": account.password}
            http.post(invitation, data=form | {"csrfmiddlewaretoken": http.cookies["csrftoken"]})


@contextmanager
def running(
    program: Path, folder: Path, access: Access, port: int
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a round's Label Studio on a port of 127.0.0.1 (0 for a free one), and end it.

    The access gets the address.

    Raises:
        DataError: It runs already, the port is taken, or the server didn't start.
    """
    # Another round's server knows no such token.
    if Studio(access).answers("/api/current-user/whoami"):
        raise DataError(f"{folder}: its Label Studio runs already, at {access.url}")
    port = _free(port)
    access.url = f"http://127.0.0.1:{port}"
    write_access(folder, access)
    data = folder.resolve() / DATA
    settings = {
        **outside_environment(),
        **_SETTINGS,
        "LABEL_STUDIO_BASE_DATA_DIR": str(data),
        "LABEL_STUDIO_USERNAME": _OWNER,
        "LABEL_STUDIO_PASSWORD": access.password,
        "LABEL_STUDIO_USER_TOKEN": access.token,
    }
    command = [str(program), "start", "--no-browser", "--internal-host", "127.0.0.1"]
    with (data / _LOG).open("ab") as log:
        process = subprocess.Popen(
            [*command, "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=settings,
            cwd=data,
        )
    try:
        _wait(process, Studio(access), data / _LOG)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], studio: Studio, log: Path) -> None:
    """Wait until the server answers; its first start makes the database."""
    until = monotonic() + _START_LIMIT
    while monotonic() < until and process.poll() is None:
        if studio.answers("/health"):
            return
        sleep(0.3)
    raise DataError(f"Label Studio did not start; see the end of {log}")


def _free(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise DataError(f"port {port} is in use; name another with --port") from None
        return int(probe.getsockname()[1])
